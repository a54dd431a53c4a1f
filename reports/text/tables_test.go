package text

import (
	"slices"
	"strings"
	"testing"

	"oversell/reports"
)

// TestTablesOfAnything checks that a line is wider than the terminal only where a single word is, whatever is in the
// table and however narrow it is.
func TestTablesOfAnything(t *testing.T) {
	rows := [][3]string{
		{"超卖超卖超卖超卖超卖超卖超卖超卖超卖超卖", "pass", "😀😀 a family 😀 of emoji, and \\x1b what was a colour"},
		{strings.Repeat("long-", 30), "violated", ""},
		{"", "", "中文没有空格，所以在任何字后都可以换行。No blanks there."},
	}
	columns := []column[[3]string]{
		{title: "NAME", cell: func(r [3]string) string { return r[0] }},
		{title: "VERDICT", cell: func(r [3]string) string { return r[1] }, tone: func(r [3]string) tone { return toneOf(r[1]) }},
		{title: "WHY SO MANY WORDS", unit: "in all", rank: 1, prose: true, cell: func(r [3]string) string { return r[2] }},
	}
	for _, width := range []int{-1, 1, 20, 40, 80, 200} {
		for n := range len(rows) + 1 {
			s := Terminal{Width: width}.sheet()
			table[[3]string]{indent: "  ", columns: columns}.write(s, rows[:n])
			for line := range strings.Lines(s.String()) {
				words := strings.Fields(line)
				alone := len(words) == 1 || len(words) == 2 && strings.HasSuffix(words[0], ":")
				if reports.Width(strings.TrimSuffix(line, "\n")) > s.width && !alone {
					t.Errorf("%d columns: %q", s.width, line)
				}
			}
			if n == 0 && s.Len() > 0 {
				t.Errorf("no rows are %q", s.String())
			}
			if n > 0 && !strings.Contains(s.String(), "pass") {
				t.Errorf("at %d columns the verdict is missing:\n%s", width, s.String())
			}
		}
	}
}

// TestColumnsGoByRank checks that the least important columns are dropped first, and that rank 0 stays.
func TestColumnsGoByRank(t *testing.T) {
	all := []extent{{rank: 0, natural: 10, least: 10, words: 10}, {rank: 2, natural: 10, least: 10, words: 10}, {rank: 1, natural: 30, least: 18, words: 6}}
	for _, c := range []struct {
		room   int
		kept   []int
		widths []int
		fits   bool
	}{
		{54, []int{0, 1, 2}, []int{10, 10, 30}, true},
		{42, []int{0, 1, 2}, []int{10, 10, 18}, true},
		{41, []int{0, 2}, []int{10, 29}, true},
		{29, []int{0}, []int{10}, true},
		{9, []int{0}, nil, false},
	} {
		kept, widths, fits := fit(all, c.room)
		if !slices.Equal(kept, c.kept) || !slices.Equal(widths, c.widths) || fits != c.fits {
			t.Errorf("in %d columns %v are kept, %v wide, %v; want %v, %v, %v", c.room, kept, widths, fits, c.kept, c.widths, c.fits)
		}
	}
}

// TestCommandsAreCopiedWhole checks that a folded command means the same as the whole one.
func TestCommandsAreCopiedWhole(t *testing.T) {
	command := `oversell run --lock a --fault 'freeze holder 150ms 5%' --out $'it\'s a long name' --seed 5 --clients 64 --stock 500`
	s := Terminal{Width: 40}.sheet()
	s.commandLine("  again:", command)
	lines := strings.Split(strings.TrimSuffix(s.String(), "\n"), "\n")
	if len(lines) < 3 {
		t.Fatalf("it is not folded:\n%s", s)
	}
	for i, line := range lines {
		if strings.HasSuffix(line, ` \`) != (i < len(lines)-1) || reports.Width(line) > 40 {
			t.Errorf("line %d is %q", i+1, line)
		}
	}
	if got := strings.Join(strings.Fields(strings.ReplaceAll(s.String(), "\\\n", "")), " "); got != "again: "+command {
		t.Errorf("%q; want %q", got, command)
	}
}
