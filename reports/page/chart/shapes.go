package chart

import "strconv"

// Rect is a rectangle, in pixels.
type Rect struct {
	X, Y, W, H int
	Class      string
}

// Pill is a word in a box centred at X, Y.
type Pill struct {
	Rect
	TextX, TextY int
	Text         string
}

// Percent formats a position in percent of the width.
func Percent(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }
