// Package printable decides which parts of an untrusted text are shown literally.
//
// Keys, arguments, names, notes and errors come from histories and servers, and may contain anything: escape sequences
// that move a terminal's cursor, characters that change the direction of writing, line breaks, commands to a CI system.
// [Text] escapes these as Go writes them in a string: \x1b, \u202e, \n. [Of] does so to every text in a document.
//
// Renderers call [Of] first; then each text is one line and is shown literally. They do the escaping for their format
// (HTML, Markdown, XML, workflow commands). The data itself does not change.
package printable

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// The longest texts that are shown whole, in characters: a word, which has no space in
// it, and a text.
const (
	longestWord = 300
	longestText = 8000
)

// Text returns s with all unprintable parts escaped: control and format characters, line separators, invalid UTF-8, and
// the beginning of a command to GitHub Actions. Long texts are cut.
func Text(s string) string {
	if plain(s) {
		return s
	}
	return cutText(escape(s))
}

// Word returns Text, quoted if it would otherwise not look like one word.
func Word(s string) string {
	t := Text(s)
	if t == "" || t != s || strings.ContainsFunc(t, unicode.IsSpace) {
		return `"` + strings.ReplaceAll(t, `"`, `\"`) + `"`
	}
	return t
}

// plain reports whether Text does not change s, cheaply for most texts.
func plain(s string) bool {
	if len(s) > longestWord {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == ':' && commandAt(s, i) || c == '#' && strings.HasPrefix(s[i:], oldCommand) {
			return false
		}
	}
	return true
}

// Prints reports whether a character is shown literally.
func Prints(r rune) bool { return unicode.IsPrint(r) || unicode.Is(unicode.Zs, r) }

// oldCommand begins a command to GitHub Actions anywhere in a line.
const oldCommand = "##["

// commandAt reports whether a command to GitHub Actions, ::name…::, may begin at i: at the
// beginning of a text, or after a space, where a line may be wrapped.
func commandAt(s string, i int) bool {
	return strings.HasPrefix(s[i:], "::") && (i == 0 || s[i-1] <= ' ') && i+2 < len(s) && unicode.IsLetter(rune(s[i+2]))
}

// escape escapes unprintable characters.
func escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == ':' && commandAt(s, i):
			b.WriteString(`\x3a`)
		case r == '#' && strings.HasPrefix(s[i:], oldCommand):
			b.WriteString(`\x23`)
		case Prints(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += n
	}
	return b.String()
}

// cutText shortens long words, and then the whole.
func cutText(s string) string {
	if len(s) <= longestWord {
		return s
	}
	var b strings.Builder
	for s := s; s != ""; {
		end := strings.IndexByte(s, ' ')
		if end < 0 {
			end = len(s)
		}
		b.WriteString(cut(s[:end], longestWord))
		space := end
		for space < len(s) && s[space] == ' ' {
			space++
		}
		b.WriteString(s[end:space])
		s = s[space:]
	}
	return cut(b.String(), longestText)
}

// cut shortens s to so many characters, and says how long it was.
func cut(s string, most int) string {
	if len(s) <= most || utf8.RuneCountInString(s) <= most {
		return s
	}
	end := 0
	for range most {
		_, n := utf8.DecodeRuneInString(s[end:])
		end += n
	}
	return fmt.Sprintf("%s…(%d bytes)", s[:end], len(s))
}

// JSON escapes, in a JSON text, unprintable characters and possible commands to GitHub Actions, as \u and four
// hexadecimal digits. The JSON value does not change.
func JSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == '\n' || Prints(r) && !bytes.HasPrefix(text[i:], []byte(oldCommand)):
			out = append(out, text[i:i+n]...)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		}
		i += n
	}
	return out
}

// Rewriter is a value with a text that reflection cannot replace, or a text of our own that is shown literally.
type Rewriter interface {
	// Rewrite returns the value, of the same type, with its text replaced.
	Rewrite(text func(string) string) any
}

// Of returns a copy of v in which every text is [Text]. It visits exported fields, elements, keys of maps and targets
// of pointers. The types of html/template are markup and do not change.
func Of[T any](v T) T {
	if out := copied(reflect.ValueOf(&v).Elem()); out.IsValid() {
		reflect.ValueOf(&v).Elem().Set(out)
	}
	return v
}

var rewriter = reflect.TypeFor[Rewriter]()

// copied returns a copy of v with its texts replaced. Types that cannot hold text are returned unchanged.
func copied(v reflect.Value) reflect.Value {
	t := v.Type()
	if t.Implements(rewriter) && t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		return reflect.ValueOf(v.Interface().(Rewriter).Rewrite(Text))
	}
	switch t.Kind() {
	case reflect.String:
		if strings.HasPrefix(t.PkgPath(), "html/") {
			return v
		}
		return reflect.ValueOf(Text(v.String())).Convert(t)
	case reflect.Struct:
		out := reflect.New(t).Elem()
		out.Set(v)
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				out.Field(i).Set(copied(v.Field(i)))
			}
		}
		return out
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(t.Elem())
		out.Elem().Set(copied(v.Elem()))
		return out
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		out := reflect.New(t).Elem()
		out.Set(copied(v.Elem()))
		return out
	case reflect.Slice:
		if v.IsNil() || !holdsText(t.Elem()) {
			return v
		}
		out := reflect.MakeSlice(t, v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(copied(v.Index(i)))
		}
		return out
	case reflect.Array:
		out := reflect.New(t).Elem()
		for i := range v.Len() {
			out.Index(i).Set(copied(v.Index(i)))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(t, v.Len())
		for i := v.MapRange(); i.Next(); {
			out.SetMapIndex(copied(i.Key()), copied(i.Value()))
		}
		return out
	}
	return v
}

// holdsText reports whether an element may hold a text: numbers do not.
func holdsText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Struct, reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Array, reflect.Map:
		return true
	}
	return false
}

// Short returns a text for use in an error: cut at 80 bytes, with its full length.
func Short(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	end := most
	for !utf8.RuneStart(text[end]) && end > most-utf8.UTFMax {
		end--
	}
	return fmt.Sprintf("%s…(%s bytes)", text[:end], humanize.Comma(int64(len(text))))
}
