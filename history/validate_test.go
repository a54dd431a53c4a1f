package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestWhatMakesNoSense checks that histories that contradict themselves are refused with the line or the operation,
// and that merely unusual ones are not.
func TestWhatMakesNoSense(t *testing.T) {
	const ok, end = `,"outcome":"ok"`, `{"trailer":{"operations":%d}}`
	op := func(client int, kind, more string, call, ret int) string {
		return fmt.Sprintf(`{"client":%d,"kind":%q,"key":"k","call_ns":%d,"return_ns":%d,%s}`, client, kind, call, ret, more)
	}
	grant := func(client int, session string, call, ret int) string {
		return op(client, "acquire", `"arg":`+session+ok, call, ret)
	}
	const huge = 1<<61 + 1
	for name, c := range map[string]struct {
		says   string // empty: the history is valid
		cut    bool   // without a trailer the history is valid
		lines  []string
		header string
	}{
		"one after the other": {lines: []string{grant(1, `"a"`, 1, 2), op(1, "buy", `"arg":1,"outcome":"ok"`, 3, 4), op(1, "release", `"arg":"a","outcome":"ok"`, 5, 6)}},
		"in any order":        {lines: []string{op(1, "release", `"arg":"a","outcome":"ok"`, 5, 6), grant(1, `"a"`, 1, 2)}},
		"a lock within a pop": {lines: []string{grant(1, "1", 2, 3), op(1, "release", `"arg":1,"outcome":"ok"`, 7, 8), op(1, "pop", `"result":5,"outcome":"ok"`, 1, 9)}},
		"two tasks of a pop":  {lines: []string{op(1, "pop", `"result":5,"session":1,"outcome":"ok"`, 1, 9), op(1, "pop", `"result":6,"session":1,"outcome":"ok"`, 1, 9)}},
		"faults at once":      {lines: []string{op(-1, "fault", `"outcome":"ok"`, 1, 9), op(-1, "fault", `"outcome":"ok"`, 2, 9)}},
		"a moment":            {lines: []string{grant(1, "1", 2, 2), grant(2, "2", 2, 2)}},
		"refused once more":   {lines: []string{grant(1, "1", 1, 2), op(2, "acquire", `"arg":1,"outcome":"refused","reason":"held"`, 3, 4)}},
		"two locks":           {lines: []string{grant(1, "1", 1, 2), strings.Replace(grant(1, "1", 3, 4), `"k"`, `"other"`, 1)}},
		"went on":             {lines: []string{`{"client":1,"kind":"buy","key":"k","arg":1,"outcome":"unknown","call_ns":5}`, op(2, "buy", `"arg":2,"outcome":"ok"`, 1, 99), op(1, "buy", `"arg":1,"outcome":"ok"`, 20, 30)}},
		"resent and refunded": {lines: []string{op(1, "buy", `"arg":"o","amount":2,"outcome":"ok"`, 1, 2), op(2, "buy", `"arg":"o","amount":2,"outcome":"ok","reason":"repeated"`, 1, 2), op(1, "refund", `"arg":"o","outcome":"ok"`, 3, 4)}},

		"equal times":      {says: "line 3: invalid history: client 1 calls release at 2 ns, and its acquire on line 2 returned at 2 ns only", lines: []string{grant(1, "1", 1, 2), op(1, "release", `"arg":2,"outcome":"ok"`, 2, 3)}},
		"two at once":      {says: "line 3: invalid history: client 7 calls buy at 2 ns, and its buy on line 2 returned at 5 ns only", lines: []string{op(7, "buy", `"arg":1,"outcome":"ok"`, 1, 5), op(7, "buy", `"arg":2,"outcome":"ok"`, 2, 3)}},
		"half within":      {says: "line 2: invalid history: client 1 calls acquire at 5 ns, and its pop on line 3 returned at 9 ns only", lines: []string{grant(1, "1", 5, 12), op(1, "pop", `"result":5,"outcome":"ok"`, 1, 9)}},
		"within itself":    {says: "line 2: invalid history: client 1 calls buy at 5 ns", lines: []string{op(1, "buy", `"arg":1,"outcome":"ok"`, 5, 6), op(1, "buy", `"arg":2,"outcome":"ok"`, 1, 9)}},
		"negative call":    {says: `line 2: invalid history: "call_ns" is -1: no time may be before`, lines: []string{op(1, "buy", `"arg":1,"outcome":"ok"`, -1, 5)}},
		"called too early": {says: "line 2: invalid history: it is called at 3 ns, before it was due at 4 ns", lines: []string{op(1, "buy", `"arg":1,"due_ns":4,"outcome":"ok"`, 3, 5)}},
		"called when due":  {lines: []string{op(1, "buy", `"arg":1,"due_ns":3,"outcome":"ok"`, 3, 5)}},
		"negative lease":   {says: `"until_ns" is -1: no time may be before`, lines: []string{op(1, "acquire", `"arg":1,"until_ns":-1,"outcome":"ok"`, 1, 5)}},
		"endless":          {says: `"return_ns" is 2305843009213693953: no time may be after`, lines: []string{op(1, "buy", `"arg":1,"outcome":"ok"`, 1, huge)}},
		"no session":       {says: "the identity of the session is missing or 0: every acquire needs one", lines: []string{grant(1, "0", 1, 2)}},
		"empty session":    {says: "the identity of the session is an empty text: every acquire needs one", lines: []string{grant(1, `""`, 1, 2)}},
		"empty under":      {says: "the session is an empty text: leave it out", lines: []string{op(1, "buy", `"arg":1,"session":"","outcome":"ok"`, 1, 2)}},
		"empty release":    {says: "line 2: invalid history: the identity of the session is an empty text: every release needs one", lines: []string{op(1, "release", `"arg":"","outcome":"ok"`, 1, 2)}},
		"session in use":   {says: `line 3: invalid history: the session "a" is in use: the acquire on line 2 has it`, lines: []string{grant(1, `"a"`, 1, 2), grant(2, `"a"`, 3, 4)}},
		"perhaps in use":   {says: `the session "5" is in use`, lines: []string{op(1, "acquire", `"arg":5,"outcome":"unknown"`, 1, 2), grant(2, `"5"`, 3, 4)}},
		"hold in use":      {says: `line 3: invalid history: the hold "h" is in use: the take on line 2 has it`, lines: []string{op(1, "take", `"arg":1,"result":1,"session":"h","outcome":"ok"`, 1, 2), op(2, "take", `"arg":1,"result":1,"session":"h","outcome":"ok"`, 3, 4)}},
		"no hold":          {says: "the identity of the hold is missing or 0: every submit needs one", lines: []string{op(1, "submit", `"arg":1,"outcome":"ok"`, 1, 2)}},
		"request in use":   {says: `line 3: invalid history: the request "1" is in use: the pop on line 2 has it`, lines: []string{op(1, "pop", `"result":5,"session":1,"outcome":"ok"`, 1, 2), op(2, "pop", `"result":6,"session":1,"outcome":"ok"`, 1, 2)}},
		"before":           {says: "line 2: invalid history: it is called at 1 ns, and the acquire that it refers to, on line 3, returned at 4 ns only", lines: []string{op(1, "release", `"arg":5,"outcome":"ok"`, 1, 2), grant(2, "5", 3, 4)}},
		"ack of nobody":    {says: `line 2: invalid history: it names the request "1", and no pop has that`, cut: true, lines: []string{op(1, "ack", `"arg":5,"session":1,"outcome":"ok"`, 3, 4)}},
		"ack of another":   {says: `line 3: invalid history: it acknowledges task "6" under the request "1", which handed out another: see line 2`, cut: true, lines: []string{op(1, "pop", `"result":5,"session":1,"outcome":"ok"`, 1, 2), op(1, "ack", `"arg":6,"session":1,"outcome":"ok"`, 3, 4)}},
		"bought outside":   {says: `line 2: invalid history: it was made in the session "7", and no acquisition has that`, cut: true, header: `,"stock":1,"objects":["lock","sale"]`, lines: []string{op(1, "buy", `"arg":1,"session":7,"outcome":"ok"`, 1, 2)}},
		"no key":           {says: `line 3: invalid history: it has no key, and the acquire on line 2 has one`, lines: []string{grant(1, "1", 1, 2), `{"client":2,"kind":"acquire","arg":2,"outcome":"ok","call_ns":3,"return_ns":4}`}},
		"less than one":    {says: "line 2: invalid history: the amount is -3: it must be positive", lines: []string{op(1, "buy", `"arg":1,"amount":-3,"outcome":"ok"`, 1, 2)}},
		"another amount":   {says: `line 3: invalid history: order "1" is of 2 pieces, and on line 2 of 1: an order sent again must be the same`, lines: []string{op(1, "buy", `"arg":1,"outcome":"ok"`, 1, 2), op(2, "buy", `"arg":1,"amount":2,"outcome":"ok","reason":"repeated"`, 1, 2)}},
		"never bought":     {says: `line 2: invalid history: order "1" is refunded, and no purchase of it is in the history`, cut: true, lines: []string{op(1, "refund", `"arg":1,"outcome":"ok"`, 1, 2)}},
		"sold out":         {says: `line 3: invalid history: order "1" is refunded, and every purchase of it was refused, as on line 2`, cut: true, lines: []string{op(1, "buy", `"arg":1,"outcome":"refused","reason":"sold-out"`, 1, 2), op(1, "refund", `"arg":1,"outcome":"ok"`, 3, 4)}},
		"bought later":     {says: `order "1" is refunded by 2 ns, and bought on line 3 at 5 ns only`, cut: true, lines: []string{op(1, "refund", `"arg":1,"outcome":"ok"`, 1, 2), op(2, "buy", `"arg":1,"outcome":"ok"`, 5, 6)}},
		"negative due":     {says: `"due_ns" is -1: no time may be before`, lines: []string{op(1, "buy", `"arg":1,"due_ns":-1,"outcome":"ok"`, 3, 5)}},
		"given up late":    {says: `"gave_up_ns" is 2305843009213693953: no time may be after`, lines: []string{`{"client":1,"kind":"buy","key":"k","arg":1,"outcome":"unknown","call_ns":1,"gave_up_ns":2305843009213693953}`}},
		// An unanswered refund may have had no effect, or one at any time since its call.
		"refund given up":   {lines: []string{`{"client":1,"kind":"refund","key":"k","arg":1,"outcome":"unknown","call_ns":1,"gave_up_ns":2}`, op(2, "buy", `"arg":1,"outcome":"ok"`, 3, 4)}},
		"refund of nothing": {lines: []string{op(1, "buy", `"arg":1,"outcome":"refused","reason":"sold-out"`, 1, 2), op(1, "refund", `"arg":1,"outcome":"unknown"`, 3, 4)}},
		"more than it":      {says: `line 3: invalid history: order "1": 2 pieces refunded, and it was of 1 on line 2`, lines: []string{op(1, "buy", `"arg":1,"outcome":"ok"`, 1, 2), op(1, "refund", `"arg":1,"amount":2,"outcome":"ok"`, 3, 4)}},
		"in two parts":      {lines: []string{op(1, "buy", `"arg":1,"amount":3,"outcome":"ok"`, 1, 2), op(1, "refund", `"arg":1,"outcome":"ok"`, 3, 4), op(1, "refund", `"arg":1,"amount":2,"outcome":"ok"`, 5, 6), op(1, "refund", `"arg":1,"amount":3,"outcome":"ok","reason":"repeated"`, 7, 8), op(1, "refund", `"arg":1,"amount":3,"outcome":"unknown"`, 9, 10)}},
		"in three parts":    {says: `line 4: invalid history: order "1": 4 pieces refunded in all, with those on line 3, and it was of 3 on line 2`, lines: []string{op(1, "buy", `"arg":1,"amount":3,"outcome":"ok"`, 1, 2), op(1, "refund", `"arg":1,"amount":2,"outcome":"ok"`, 3, 4), op(1, "refund", `"arg":1,"amount":2,"outcome":"ok"`, 5, 6)}},
		"refunded twice":    {header: `,"stock":1,"promises":[{"of":"sale","property":"once-per-order"}]`, lines: []string{op(1, "buy", `"arg":1,"outcome":"ok"`, 1, 2), op(1, "refund", `"arg":1,"outcome":"ok"`, 3, 4), op(1, "refund", `"arg":1,"outcome":"ok"`, 5, 6)}},
		"a text left":       {says: `line 2: invalid history: the result of reading "left" is "2.0": it must be a whole number`, lines: []string{op(1, "read-state", `"arg":"left","result":"2.0","outcome":"ok"`, 1, 2)}},
		"a long session":    {says: `…(5,000 bytes)" is in use: the acquire on line 2 has it`, lines: []string{grant(1, `"`+strings.Repeat("s", 5000)+`"`, 1, 2), grant(2, `"`+strings.Repeat("s", 5000)+`"`, 3, 4)}},
		"granted, held":     {says: `the outcome is "ok" with the reason "held": no acquire ends so`, lines: []string{op(1, "acquire", `"arg":1,"outcome":"ok","reason":"held"`, 1, 2)}},
		"unknown, held":     {says: `the outcome is "unknown" with the reason "held": no acquire ends so`, lines: []string{op(1, "acquire", `"arg":1,"outcome":"unknown","reason":"held"`, 1, 2)}},
		"sold-out lock":     {says: `the outcome is "refused" with the reason "sold-out": no acquire ends so`, lines: []string{op(1, "acquire", `"arg":1,"outcome":"refused","reason":"sold-out"`, 1, 2)}},
		"a sale, no stock":  {says: `line 1: invalid history: it is about a sale and does not tell its "stock"`, header: `,"sale":"ours"`},
		"none on sale":      {header: `,"sale":"ours","stock":0`},
		"negative stock":    {says: `line 1: invalid history: "stock" is -5: it must be from 0 to`, header: `,"stock":-5`},
		"negative lease 2":  {says: `line 1: invalid history: "ttl_ns" is -5: it must be from 0 to`, header: `,"ttl_ns":-5`},
		"improbable":        {says: `line 1: invalid history: "resend" is 1.5: a probability is from 0 to 1`, header: `,"resend":1.5`},
	} {
		text := strings.Join(slices.Concat([]string{`{"schema":"oversell-history/1"` + cmp.Or(c.header, `,"promises":[]`) + "}"}, c.lines), "\n") + "\n"
		for _, cut := range []bool{false, true} {
			whole := text
			if !cut {
				whole += fmt.Sprintf(end, len(c.lines))
			}
			_, err := ReadFrom(strings.NewReader(whole))
			switch wrong := c.says != "" && !(cut && c.cut); {
			case !wrong && err != nil:
				t.Errorf("%s (cut %t): %v", name, cut, err)
			case wrong && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%s (cut %t): %v\nwant %s", name, cut, err, c.says)
			}
		}
	}
}

// TestInvalidOperationsByNumber checks that, in a binary history, which has no lines, an error names the number of
// the operation.
func TestInvalidOperationsByNumber(t *testing.T) {
	ops := loadOps(6, 2, 1)
	ops[3].Call = ops[3].Return + 1
	_, err := Read(writeHistory(t, testHeader(), &Trailer{}, ops))
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "operation 4: invalid history: it returns at ") {
		t.Error(err)
	}
}

func BenchmarkValidate(b *testing.B) {
	for _, clients := range []int{50, 5000} {
		ops := loadOps(1_000_000, clients, 1)
		b.Run(fmt.Sprintf("1M/clients=%d", clients), func(b *testing.B) {
			for b.Loop() {
				v := validator{h: &History{Ops: ops}, at: new(places)}
				if err := v.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
