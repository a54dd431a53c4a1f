package jsonscan

import (
	"strconv"
	"testing"
)

// TestWholeNumber checks which texts begin with a number in decimal form, and how long it is.
func TestWholeNumber(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "7,": "7", "-12}": "-12", "123456789012345678": "123456789012345678", "": "", "-": "", "01": "", "-0": "", "x": "", "1234567890123456789": "",
	} {
		got := ""
		if n, size := WholeNumber([]byte(text)); size > 0 {
			if got = strconv.FormatInt(n, 10); size != len(got) {
				t.Errorf("%q: the number %s has %d bytes", text, got, size)
			}
		}
		if got != want {
			t.Errorf("%q begins with %q; want %q", text, got, want)
		}
	}
}

// TestScanner reads an object, and stops at what it does not read.
func TestScanner(t *testing.T) {
	s := Scanner{Rest: []byte(` { "a" : 12 , "kind":"ok","b": "é" }`)}
	if !s.Skip('{') {
		t.Fatal("no object")
	}
	if name, ok := s.Text(); !ok || string(name) != "a" || !s.Skip(':') {
		t.Fatalf("the first name is %q", name)
	}
	if n, ok := s.Number(); !ok || n != 12 || !s.Skip(',') {
		t.Fatalf("the number is %d", n)
	}
	if name, ok := s.Text(); !ok || string(name) != "kind" || !s.Skip(':') {
		t.Fatalf("the second name is %q", name)
	}
	if name, ok := s.Name([]string{"lost", "ok"}); !ok || name != "ok" || !s.Skip(',') {
		t.Fatalf("the text is %q", name)
	}
	if _, ok := s.Text(); !ok || !s.Skip(':') {
		t.Fatal("no third name")
	}
	if text, ok := s.Text(); ok {
		t.Errorf("it reads %q, which package json should read", text)
	}
}
