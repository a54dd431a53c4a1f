package history

import (
	"bytes"

	"oversell/internal/jsonscan"
)

// scan reads a line of JSON as this program writes it: one object, the known fields, whole numbers, and strings without
// escapes. It reports false for any other line. Package json then reads that line, several times more slowly, or says
// what is wrong with it.
func (f *fields) scan(line []byte) bool {
	*f = fields{}
	s := jsonscan.Scanner{Rest: line}
	if !s.Skip('{') || s.Skip('}') {
		return false
	}
	for {
		name, ok := s.Text()
		if !ok || !s.Skip(':') || !f.set(&s, name) {
			return false
		}
		if s.Skip('}') {
			return len(bytes.TrimSpace(s.Rest)) == 0
		}
		if !s.Skip(',') {
			return false
		}
	}
}

func (f *fields) set(s *jsonscan.Scanner, name []byte) (ok bool) {
	had := f.has
	var n int64
	switch string(name) {
	case "client":
		n, ok = s.Number()
		f.has, f.op.Client = f.has|fieldClient, int32(n)
		ok = ok && int64(f.op.Client) == n
	case "amount":
		n, ok = s.Number()
		f.has, f.op.Amount = f.has|fieldAmount, int32(n)
		ok = ok && int64(f.op.Amount) == n
	case "kind":
		f.has |= fieldKind
		f.kind, ok = s.Name(kindNames[:])
	case "outcome":
		f.has |= fieldOutcome
		f.outcome, ok = s.Name(outcomeNames[:])
	case "reason":
		f.has |= fieldReason
		f.reason, ok = s.Name(reasonNames[:])
	case "key":
		f.has |= fieldKey
		f.op.Key, ok = scanValue(s)
	case "arg":
		f.has |= fieldArg
		f.op.Arg, ok = scanValue(s)
	case "result":
		f.has |= fieldResult
		f.op.Result, ok = scanValue(s)
	case "session":
		f.has |= fieldSession
		f.op.Session, ok = scanValue(s)
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

func (f *fields) time(s *jsonscan.Scanner, is field, to *int64) (ok bool) {
	f.has |= is
	*to, ok = s.Number()
	return ok
}

// scanValue reads a string or a whole number.
func scanValue(s *jsonscan.Scanner) (Value, bool) {
	s.Blanks()
	if len(s.Rest) > 0 && s.Rest[0] != '"' {
		n, ok := s.Number()
		return Int(n), ok
	}
	text, ok := s.Text()
	if !ok {
		return Value{}, false
	}
	if n, size := jsonscan.WholeNumber(text); size == len(text) && size > 0 {
		return Int(n), true
	}
	return Text(string(text)), true
}
