package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"oversell/internal/printable"
)

// screen is a terminal that reports what a view must not do: write beyond the end of a line, or send other escape
// sequences than the few that it needs.
type screen struct {
	width   int
	rows    [][]string // of cells
	row     int        // of the cursor, as is col
	col     int
	problem string
	long    []string // prefixes of lines that may be wider than the screen
}

func newScreen(width int) *screen { return &screen{width: width, rows: [][]string{nil}} }

var sequence = regexp.MustCompile(`^\x1b\[([\d;]*)([A-Za-z])`)

func (s *screen) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 && s.problem == "" {
		switch {
		case b[0] == '\n':
			s.row++
			s.col = 0
			if s.row == len(s.rows) {
				s.rows = append(s.rows, nil)
			}
			b = b[1:]
		case b[0] == '\r':
			s.col = 0
			b = b[1:]
		case b[0] == 0x1b:
			m := sequence.FindSubmatch(b)
			if m == nil {
				s.problem = fmt.Sprintf("the sequence %q", b[:min(len(b), 8)])
				break
			}
			s.obey(string(m[2]), string(m[1]))
			b = b[len(m[0]):]
		case b[0] < ' ':
			s.problem = fmt.Sprintf("the control character %q", b[0])
		default:
			cell, rest, width, _ := uniseg.FirstGraphemeCluster(b, -1)
			s.put(string(cell), width)
			b = rest
		}
	}
	return n, nil
}

func (s *screen) obey(command, number string) {
	n, _ := strconv.Atoi(number)
	switch {
	case command == "A" && n <= s.row:
		s.row -= n
	case command == "K":
		s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
	case command == "J":
		s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
		s.rows = s.rows[:s.row+1]
	case command == "m":
	default:
		s.problem = "the sequence " + number + command
	}
}

func (s *screen) put(cell string, width int) {
	line := strings.Join(s.rows[s.row], "")
	if slices.ContainsFunc(s.long, func(begin string) bool { return strings.HasPrefix(line, begin) }) {
		s.col++
		s.rows[s.row] = append(s.rows[s.row], cell)
		return
	}
	if s.col+width > s.width-1 {
		s.problem = fmt.Sprintf("%q reaches the last column", line)
		return
	}
	row := s.rows[s.row]
	for len(row) < s.col+width {
		row = append(row, " ")
	}
	row[s.col] = cell
	for i := 1; i < width; i++ {
		row[s.col+i] = ""
	}
	s.rows[s.row], s.col = row, s.col+width
}

// text returns what the screen shows.
func (s *screen) text() string {
	lines := make([]string, len(s.rows))
	for i, r := range s.rows {
		lines[i] = strings.TrimRight(strings.Join(r, ""), " ")
	}
	return strings.Join(lines, "\n")
}

func (s *screen) want(t *testing.T, want string) {
	t.Helper()
	if s.problem != "" {
		t.Fatalf("the terminal was given %s", s.problem)
	}
	if got := s.text(); got != want {
		t.Fatalf("on the screen is\n%s\nwant\n%s", got, want)
	}
	if s.col != 0 {
		t.Fatalf("the cursor is in column %d, not at the start of a line", s.col)
	}
}

func testView(width, height int) (*view, *screen) {
	s := newScreen(width)
	return &view{w: s, size: func() (int, int) { return s.width, height }}, s
}

func TestViewDrawsOverItself(t *testing.T) {
	v, s := testView(20, 10)
	fmt.Fprintln(s, "before")
	v.draw([]string{"one", "two", styled(loudly, "three")})
	s.want(t, "before\none\ntwo\nthree\n")
	v.draw([]string{"1"})
	s.want(t, "before\n1\n")
	v.above("what stays, and is longer than a line")
	s.want(t, "before\nwhat stays, and is\n      longer than a\n      line\n1\n")
	v.draw([]string{"more than there is room for", "二百五十六件商品已售出"})
	s.want(t, "before\nwhat stays, and is\n      longer than a\n      line\nmore than there is~\n二百五十六件商品已~\n")
	v.clear()
	v.clear()
	s.want(t, "before\nwhat stays, and is\n      longer than a\n      line\n")
}

// TestViewLeavesTheLastLine checks that a view leaves the last line of the terminal free: otherwise it would scroll
// itself away.
func TestViewLeavesTheLastLine(t *testing.T) {
	v, s := testView(20, 3)
	v.draw([]string{"one", "two", "three", "four"})
	s.want(t, "one\ntwo\n")
}

// TestViewOnAnyScreen draws and writes random text on screens of any width.
func TestViewOnAnyScreen(t *testing.T) {
	words := []string{"a", "order", "█", "库存", "\x1b[2J", "averyveryverylongwordwithoutanyspace", "\n", "é", "👩‍👩‍👧"}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		text := func() string {
			var b strings.Builder
			for range r.IntN(30) {
				b.WriteString(words[r.IntN(len(words))] + " ")
			}
			return b.String()
		}
		v, s := testView(4+r.IntN(60), 5) // no narrower than a wide character
		for range 10 {
			switch r.IntN(3) {
			case 0:
				v.above(text())
			default:
				var lines []string
				for range r.IntN(7) {
					lines = append(lines, styled([]string{plainly, dimly, loudly}[r.IntN(3)], printable.Text(text())))
				}
				v.draw(lines)
			}
			if s.problem != "" {
				t.Fatalf("seed %d, width %d: the terminal was given %s", seed, s.width, s.problem)
			}
		}
	}
}

func TestWrapLosesNothing(t *testing.T) {
	text := "no-oversell of the sale broken within 12 ms: sold 501 of 500: and averyveryverylongwordwithoutanyspace besides"
	for width := 1; width < 130; width++ {
		lines := wrap(text, width, "      ")
		for _, line := range lines {
			if uniseg.StringWidth(line) > width {
				t.Fatalf("width %d: %q", width, line)
			}
		}
		var all bytes.Buffer
		for _, line := range lines {
			all.WriteString(line)
		}
		if got := strings.ReplaceAll(all.String(), " ", ""); got != strings.ReplaceAll(text, " ", "") {
			t.Fatalf("width %d: %q", width, lines)
		}
	}
}

// TestViewInANarrowerTerminal checks that a view that is redrawn after the terminal became narrower erases all the
// rows that its wrapped lines take.
func TestViewInANarrowerTerminal(t *testing.T) {
	var out bytes.Buffer
	width := 40
	v := &view{w: &out, size: func() (int, int) { return width, 10 }}
	v.draw([]string{strings.Repeat("a", 35), "b", strings.Repeat("c", 20)})
	out.Reset()
	width = 10
	v.draw([]string{"d"})
	if want := "\r\x1b[7A\x1b[Jd\x1b[K\n\x1b[J"; out.String() != want {
		t.Errorf("%q; want %q", out.String(), want)
	}
}
