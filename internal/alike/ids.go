package alike

import (
	"math"
	"strconv"
)

// IDs differ from 7 by a power of ten or of two, or only by the sign.
func IDs() []int64 {
	ids := []int64{7, 0, -7, -1, math.MinInt64}
	for n := int64(10); n < math.MaxInt64/10; n *= 10 {
		ids = append(ids, 7+n)
	}
	for k := range 62 {
		if n := int64(1) << k; n > 2 { // 7+1 and 7+2 are no power of ten away from others
			ids = append(ids, 7+n)
		}
	}
	return ids
}

// digits are those of a number from which others are made.
const digits = "1764514823905176428"

// Digits are numbers of 5 to 19 digits. For each length there is one from which others differ in one digit each: code that drops,
// rounds or keeps only some digits of numbers of any length takes two of them for the same.
func Digits() []int64 {
	var ids []int64
	for length := 5; length <= len(digits); length++ {
		text := []byte(digits[:length])
		ids = append(ids, number(text))
		for i, was := range text {
			text[i] = '1' + (was-'0'+2)%8 // another digit, and not 0
			if i == 0 && length == len(digits) {
				text[i] = '2' // more is no number of 64 bits
			}
			ids = append(ids, number(text))
			text[i] = was
		}
	}
	return ids
}

func number(text []byte) int64 {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		panic(err) // the digits are given
	}
	return n
}

// Bits are numbers of 62 bits that differ from the first one in one bit, or in two bits that are 8, 16, 24 or 32 apart: code that
// keeps only some bits, or folds them by an exclusive or, takes two of them for the same.
func Bits() []int64 {
	const first, bits = 0x2a5c_93e1_7b04_d68f, 62
	ids := []int64{first}
	for i := range bits {
		ids = append(ids, first^1<<i)
		for _, apart := range []int{8, 16, 24, 32} {
			if i+apart < bits {
				ids = append(ids, first^1<<i^1<<(i+apart))
			}
		}
	}
	return ids
}
