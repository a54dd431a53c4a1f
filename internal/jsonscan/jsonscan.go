// Package jsonscan reads simple JSON quickly: strings of printable ASCII without escapes, and whole numbers of up to 18 digits. It
// refuses everything else, which package encoding/json can then read, or report as an error.
package jsonscan

// Scanner reads a line. Rest is the part that has not been read. Methods that report false may have read some of it.
type Scanner struct{ Rest []byte }

// Blanks skips white space.
func (s *Scanner) Blanks() {
	for len(s.Rest) > 0 && (s.Rest[0] == ' ' || s.Rest[0] == '\t') {
		s.Rest = s.Rest[1:]
	}
}

// Skip skips a character, if it comes next.
func (s *Scanner) Skip(c byte) bool {
	s.Blanks()
	if len(s.Rest) == 0 || s.Rest[0] != c {
		return false
	}
	s.Rest = s.Rest[1:]
	return true
}

// Text reads a string without escapes.
func (s *Scanner) Text() ([]byte, bool) {
	if !s.Skip('"') {
		return nil, false
	}
	for i, c := range s.Rest {
		switch {
		case c == '"':
			text := s.Rest[:i]
			s.Rest = s.Rest[i+1:]
			return text, true
		case c < ' ' || c > '~' || c == '\\':
			return nil, false
		}
	}
	return nil, false
}

// Name reads a string that is one of some names.
func (s *Scanner) Name(names []string) (string, bool) {
	text, ok := s.Text()
	if !ok {
		return "", false
	}
	for _, n := range names {
		if string(text) == n {
			return n, true
		}
	}
	return "", false
}

// Number reads a whole number of up to 18 digits.
func (s *Scanner) Number() (int64, bool) {
	s.Blanks()
	n, size := WholeNumber(s.Rest)
	if size == 0 {
		return 0, false
	}
	s.Rest = s.Rest[size:]
	s.Blanks()
	return n, len(s.Rest) > 0 && (s.Rest[0] == ',' || s.Rest[0] == '}')
}

// WholeNumber reads a number of up to 18 digits in decimal form, without leading zeros, and returns its length; 0 if
// there is none.
func WholeNumber(b []byte) (n int64, size int) {
	negative := len(b) > 0 && b[0] == '-'
	i := 0
	if negative {
		i = 1
	}
	first := i
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		if i-first == 18 {
			return 0, 0
		}
		n = n*10 + int64(b[i]-'0')
		i++
	}
	switch {
	case i == first, b[first] == '0' && (i > first+1 || negative):
		return 0, 0
	case negative:
		return -n, i
	}
	return n, i
}
