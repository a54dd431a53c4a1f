package history

import "bytes"

// scan reads a line of JSON as this program writes it: one object, the known fields, whole numbers, and strings without
// escapes. It reports false for any other line. Package json then reads that line, several times more slowly, or says
// what is wrong with it.
func (f *fields) scan(line []byte) bool {
	*f = fields{}
	s := scanner{rest: line}
	if !s.skip('{') || s.skip('}') {
		return false
	}
	for {
		name, ok := s.text()
		if !ok || !s.skip(':') || !f.set(&s, name) {
			return false
		}
		if s.skip('}') {
			return len(bytes.TrimSpace(s.rest)) == 0
		}
		if !s.skip(',') {
			return false
		}
	}
}

func (f *fields) set(s *scanner, name []byte) (ok bool) {
	had := f.has
	var n int64
	switch string(name) {
	case "client":
		n, ok = s.number()
		f.has, f.op.Client = f.has|fieldClient, int32(n)
		ok = ok && int64(f.op.Client) == n
	case "amount":
		n, ok = s.number()
		f.has, f.op.Amount = f.has|fieldAmount, int32(n)
		ok = ok && int64(f.op.Amount) == n
	case "kind":
		f.has |= fieldKind
		f.kind, ok = s.name(kindNames[:])
	case "outcome":
		f.has |= fieldOutcome
		f.outcome, ok = s.name(outcomeNames[:])
	case "reason":
		f.has |= fieldReason
		f.reason, ok = s.name(reasonNames[:])
	case "key":
		f.has |= fieldKey
		f.op.Key, ok = s.value()
	case "arg":
		f.has |= fieldArg
		f.op.Arg, ok = s.value()
	case "result":
		f.has |= fieldResult
		f.op.Result, ok = s.value()
	case "session":
		f.has |= fieldSession
		f.op.Session, ok = s.value()
	case "due_ns":
		ok = f.time(s, fieldDue, (*int64)(&f.op.Due))
	case "call_ns":
		ok = f.time(s, fieldCall, (*int64)(&f.op.Call))
	case "return_ns":
		ok = f.time(s, fieldReturn, &f.ret)
	case "gave_up_ns":
		ok = f.time(s, fieldGaveUp, &f.gaveUp)
	case "until_ns":
		ok = f.time(s, fieldUntil, (*int64)(&f.op.Until))
	case "fence":
		ok = f.time(s, fieldFence, &f.op.Fence)
	}
	return ok && f.has != had // and it was not given before
}

func (f *fields) time(s *scanner, is field, to *int64) (ok bool) {
	f.has |= is
	*to, ok = s.number()
	return ok
}

// scanner reads a line.
type scanner struct{ rest []byte }

// blanks skips white space.
func (s *scanner) blanks() {
	for len(s.rest) > 0 && (s.rest[0] == ' ' || s.rest[0] == '\t') {
		s.rest = s.rest[1:]
	}
}

// skip skips a character, if it comes next.
func (s *scanner) skip(c byte) bool {
	s.blanks()
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// text reads a string without escapes.
func (s *scanner) text() ([]byte, bool) {
	if !s.skip('"') {
		return nil, false
	}
	for i, c := range s.rest {
		switch {
		case c == '"':
			text := s.rest[:i]
			s.rest = s.rest[i+1:]
			return text, true
		case c < ' ' || c > '~' || c == '\\':
			return nil, false
		}
	}
	return nil, false
}

// name reads a string that is one of some names.
func (s *scanner) name(names []string) (string, bool) {
	text, ok := s.text()
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

// number reads a whole number of up to 18 digits.
func (s *scanner) number() (int64, bool) {
	s.blanks()
	n, size := wholeNumber(s.rest)
	if size == 0 {
		return 0, false
	}
	s.rest = s.rest[size:]
	s.blanks()
	return n, len(s.rest) > 0 && (s.rest[0] == ',' || s.rest[0] == '}')
}

// value reads a string or a whole number.
func (s *scanner) value() (Value, bool) {
	s.blanks()
	if len(s.rest) > 0 && s.rest[0] != '"' {
		n, ok := s.number()
		return Int(n), ok
	}
	text, ok := s.text()
	if !ok {
		return Value{}, false
	}
	if n, size := wholeNumber(text); size == len(text) && size > 0 {
		return Int(n), true
	}
	return Text(string(text)), true
}

// wholeNumber reads a number of up to 18 digits in decimal form, without leading zeros, and returns its length; 0 if
// there is none.
func wholeNumber(b []byte) (n int64, size int) {
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
