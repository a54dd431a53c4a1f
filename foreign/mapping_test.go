package foreign

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/checker"
	"oversell/history"
)

const orders = `rows: csv
stock: 1
promises: [{of: sale, property: no-oversell}]
skip: [{column: action, values: [browse]}]
fields:
  client: user
  kind: {column: action, values: {purchase: buy, cancel: refund}}
  arg: order
  call: {column: began, unit: ms}
  duration: {column: took, unit: ms}
outcome:
  column: status
  ok: ["201"]
  refused: {"409": sold-out}
  unknown: ["", "504"]
`

const ordersLog = `user,action,order,began,took,status
ann,purchase,o1,1767225600000,12,201
bob,browse,,1767225600001,1,200
bob,purchase,o2,1767225600004,9,409
cid,purchase,o3,1767225600005,9,504
`

func mapOf(t testing.TB, text string) *Map {
	t.Helper()
	m, err := parseMap([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMapped(t *testing.T) {
	h, err := mapOf(t, orders).read([]byte(ordersLog), "csv")
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Ops) != 3 || h.Trailer == nil || h.Header.Stock != 1 || !strings.Contains(strings.Join(h.Remarks, "; "), "1 row skipped") {
		t.Fatalf("%+v %v", h.Ops, h.Remarks)
	}
	if op := h.Ops[0]; op.Outcome != history.Unknown && op.Return-op.Call != 14*time.Millisecond-2 {
		t.Errorf("a call and a length of milliseconds leave two of them open: %v", op)
	}
	for log, want := range map[string]checker.Result{
		ordersLog: checker.Unknown,
		strings.Replace(ordersLog, "409", "201", 1): checker.Violated,
	} {
		h, err := mapOf(t, orders).read([]byte(log), "csv")
		if err != nil {
			t.Fatal(err)
		}
		if v := checker.Judge(h).Verdicts[0]; v.Result != want {
			t.Errorf("%v, want %v: %s", v.Result, want, v.Why)
		}
	}
}

// TestMappedForms reads other forms of the same log.
func TestMappedForms(t *testing.T) {
	for name, c := range map[string]struct{ with, log string }{
		"JSON lines": {strings.NewReplacer("rows: csv", "rows: jsonl", "column: began", "column: at.began").Replace(orders),
			`{"user":"ann","action":"purchase","order":"o1","at":{"began":1767225600000},"took":12,"status":201}` + "\n\n" + `{"user":7,"action":"purchase","order":"o2","at.began":"1767225600004.5","took":0.25,"status":"409"}` + "\n"},
		"times as texts": {strings.Replace(orders, "{column: began, unit: ms}", "began", 1),
			"user,action,order,began,took,status\nann,purchase,o1,2026-01-01T00:00:00.000Z,12,201\nbob,purchase,o2,2026-01-01T00:00:00.004+00:00,9,409\n"},
		"return and a format": {strings.NewReplacer("{column: began, unit: ms}", "{column: began, format: \"02/Jan/2006:15:04:05.000 -0700\"}", "duration: {column: took, unit: ms}", "return: {column: took, format: \"02/Jan/2006:15:04:05.000 -0700\"}", "rows: csv", "separator: \";\"").Replace(orders),
			"user;action;order;began;took;status\nann;purchase;o1;01/Jan/2026:00:00:00.000 +0000;01/Jan/2026:00:00:00.012 +0000;201\nbob;purchase;\"o\n2\";01/Jan/2026:00:00:00.001 +0000;01/Jan/2026:00:00:00.002 +0000;409\n"},
	} {
		form := "csv"
		if strings.Contains(name, "JSON") {
			form = "jsonl"
		}
		h, err := mapOf(t, c.with).read([]byte(c.log), form)
		if err != nil || len(h.Ops) != 2 || checker.Judge(h).Verdicts[0].Result != checker.Holds {
			t.Errorf("%s: %v, %+v", name, err, h)
		}
	}
}

// TestNamesOfClients checks that clients keep the numbers that the log has for them, and that others are listed.
func TestNamesOfClients(t *testing.T) {
	log := func(users ...string) string {
		text := "user,action,order,began,took,status\n"
		for i, user := range users {
			text += fmt.Sprintf("%s,purchase,o%d,%d,2,201\n", user, i, 1767225600000+10*i)
		}
		return text
	}
	for _, c := range []struct {
		log   string
		want  []int32
		notes string
	}{
		{log("2", "1", "2"), []int32{2, 1, 2}, ""},
		{log("bob", "ann", "bob"), []int32{0, 1, 0}, "clients by their numbers here: 0 is bob, 1 is ann"},
		{log("2", "ann"), []int32{0, 1}, "0 is 2, 1 is ann"},
		{log("02", "2"), []int32{0, 1}, "0 is 02, 1 is 2"},
		{log("5000000000"), []int32{0}, "0 is 5000000000"},
		{strings.ReplaceAll(log("2", "2"), "010,2,", "000,2,"), []int32{2, 3}, "3 is 2"},
	} {
		h, err := mapOf(t, orders).read([]byte(c.log), "csv")
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(h.Ops, func(a, b history.Op) int { return strings.Compare(a.Arg.String(), b.Arg.String()) })
		var got []int32
		for _, op := range h.Ops {
			got = append(got, op.Client)
		}
		if notes := strings.Join(h.Remarks, "; "); !slices.Equal(got, c.want) || !strings.Contains(notes, c.notes) || c.notes == "" && strings.Contains(notes, "numbers here") {
			t.Errorf("%s%v and %q, want %v and %q", c.log, got, notes, c.want, c.notes)
		}
	}
}

// TestGapsInALog checks that a row may lack what it does not need, and that a column which no row has is an error.
func TestGapsInALog(t *testing.T) {
	with := "rows: %s\npromises: [{of: lock, property: mutual-exclusion}]\nfields: {client: user, kind: act, arg: session, until: until, call: {column: began}, return: {column: ended}}\n" +
		"outcome: {column: status, ok: [ok], refused: {held: held}, unknown: [lost]}\n"
	csv := "user,act,session,until,began,ended,status\n"
	object := func(user, act, session, until string, began int, status string) string {
		return fmt.Sprintf(`{"user":%q,"act":%q,"session":%q%s,"began":%d,"ended":%d,"status":%q}`+"\n", user, act, session, until, began, began+2, status)
	}
	for name, c := range map[string]struct{ form, log, wrong string }{
		"refused and released": {"csv", csv + "a,acquire,s1,90,1,2,ok\nb,acquire,s2,,3,4,held\na,release,s1,,5,6,ok\nb,acquire,s3,,7,8,lost\n", ""},
		"granted":              {"csv", csv + "a,acquire,s1,,1,2,ok\n", "until is \"\""},
		"not a time":           {"csv", csv + "a,acquire,s1,90,1,2,ok\na,release,s1,x,5,6,ok\n", "until is \"x\""},
		"no such column":       {"csv", strings.Replace(csv, "until", "ends", 1) + "b,acquire,s2,,3,4,held\n", "there is no column \"until\""},
		"objects":              {"jsonl", object("a", "acquire", "s1", `,"until":90`, 1, "ok") + object("b", "acquire", "s2", "", 4, "held") + object("a", "release", "s1", `,"until":null`, 9, "ok"), ""},
		"objects without it":   {"jsonl", object("b", "acquire", "s2", "", 4, "held"), "there is no column \"until\""},
		"an object granted":    {"jsonl", object("a", "acquire", "s1", "", 1, "ok"), "there is no column \"until\""},
	} {
		_, err := mapOf(t, fmt.Sprintf(with, c.form)).read([]byte(c.log), c.form)
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v, want %q", name, err, c.wrong)
		}
	}
}

// TestAnsweredBeforeTheCall checks the length of time in the message.
func TestAnsweredBeforeTheCall(t *testing.T) {
	with := strings.Replace(orders, "duration: {column: took", "return: {column: took", 1)
	_, err := mapOf(t, with).read([]byte("user,action,order,began,took,status\nann,purchase,o1,1767225600005,1767225600004,201\n"), "csv")
	if err == nil || !strings.Contains(err.Error(), "came 1ms before the call") {
		t.Error(err)
	}
}

// TestClientsOfALog checks that a user who does two things at once becomes two clients.
func TestClientsOfALog(t *testing.T) {
	log := "user,action,order,began,took,status\nann,purchase,o1,1767225600000,12,201\nann,purchase,o2,1767225600005,2,409\nann,purchase,o3,1767225600020,2,409\n"
	h, err := mapOf(t, orders).read([]byte(log), "csv")
	if err != nil {
		t.Fatal(err)
	}
	clients := map[string]int32{}
	for _, op := range h.Ops {
		clients[op.Arg.String()] = op.Client
	}
	if clients["o1"] == clients["o2"] || clients["o1"] != clients["o3"] {
		t.Errorf("%v", clients)
	}
}

func TestWrongLog(t *testing.T) {
	line := "ann,purchase,o1,1767225600000,12,201"
	for broken, want := range map[string]string{
		strings.Replace(line, "201", "500", 1):           `2:34: the outcome "500" is neither ok, refused nor unknown in the map: add it to one of them, or say else: unknown`,
		strings.Replace(line, "purchase", "buy", 1):      `2:5: action is "buy", which the values of the map on line 7 do not have`,
		strings.Replace(line, "1767225600000", "x", 1):   `2:17: call is "x": want a number of ms, or a format for texts`,
		strings.Replace(line, "12", "-12", 1):            `2:31: the time of the answer is "-12": want a number of ms, or a format for texts`,
		strings.Replace(line, ",o1", "", 1):              `2:1: the row has another number of columns than the first line`,
		strings.Replace(line, "o1", `"o1`, 1):            `2:`,
		line + "\n" + strings.Replace(line, "o1", "", 1): `3: `,
	} {
		_, err := mapOf(t, orders).read([]byte("user,action,order,began,took,status\n"+broken+"\n"), "csv")
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n%v, want\n%s", broken, err, want)
		}
	}
	for log, want := range map[string]string{
		"{\n":        `1:`,
		`{"user":1}`: `1:1: there is no column "action", which the map names on line 7`,
	} {
		if _, err := mapOf(t, orders).read([]byte(log), "jsonl"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", log, err, want)
		}
	}
}

func TestWrongMap(t *testing.T) {
	for from, to := range map[[2]string]string{
		{"rows: csv", "rows: xml"}:                                                  `1:1: rows: "xml" is not known: it is csv or jsonl`,
		{"arg: order", "args: order"}:                                               `8:3: the key "args" is not known here: did you mean`,
		{"{column: began, unit: ms}", "{unit: ms}"}:                                 `9:10: neither column nor value is given: one is required`,
		{"unit: ms}\n  duration", "unit: min}\n  duration"}:                         `9:10: unit "min" is not known: it is one of ns, us, ms, s`,
		{"sold-out", "gone"}:                                                        `12:3: refused: "409" stands for reason "gone" is not known: want one of held, lost, sold-out, stale, empty, changed`,
		{"  duration: {column: took, unit: ms}\n", ""}:                              `1:1: fields: neither return nor duration is given: one is required`,
		{"stock: 1", "ttl: soon"}:                                                   `2:6: "soon" is not a duration: want one such as 10s`,
		{"stock: 1", "stock:"}:                                                      `2:1: stock has no value: give it one, or leave it out`,
		{"  column: status\n", ""}:                                                  `1:1: outcome: column is missing`,
		{"  client: user\n  kind:", "  kind: {value: buy, column: action}\n  key:"}: `6:10: column and value are both given`,
	} {
		text := strings.Replace(orders, from[0], from[1], 1)
		if text == orders {
			t.Fatal("nothing was replaced: ", from[0])
		}
		if _, err := parseMap([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), to) {
			t.Errorf("%s:\n%v, want\n%s", from[1], err, to)
		}
	}
}

// TestOneIdentity checks that a number in JSON has one identity, however it is written and whatever it is for, and
// that blanks count only within quotes.
func TestOneIdentity(t *testing.T) {
	lines := strings.NewReplacer("rows: csv", "rows: jsonl", "  client", "  key: key\n  amount: n\n  client").Replace(orders)
	h, err := mapOf(t, lines).read([]byte(`{"user":7,"key":7,"action":"purchase","order":7.0,"n":1.0,"began":1767225600000,"took":12.0,"status":201.0}
{"user":"7","key":70e-1,"action":"purchase","order":"7.0","n":1,"began":1767225600020,"took":12,"status":201}
{"user":7.0,"key":"7","action":"purchase","order":7.50,"n":1,"began":1767225600040,"took":12,"status":201}
{"user":7.0,"key":"7","action":"purchase","order":75e-1,"n":1,"began":1767225600060,"took":12,"status":201}
`), "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"7", "7.0", "7.5", "7.5"} {
		if op := h.Ops[i]; op.Client != 7 || op.Key != h.Ops[0].Key || op.Arg.String() != want || op.Amount != 1 {
			t.Errorf("operation %d: %+v, want client 7 and the order %s", i, op, want)
		}
	}
	if a, b := h.Ops[0], h.Ops[1]; a.Return-a.Call >= b.Return-b.Call {
		t.Errorf("12.0 ms are told no more exactly than 12: %v, %v", a.Return-a.Call, b.Return-b.Call)
	}
	h, err = mapOf(t, orders).read([]byte("user,action,order,began,took,status\na, purchase ,\" 1 \",1767225600000,12, 201\na,purchase, 1 ,1767225600020,\" 12 \",201\na,purchase,1,1767225600040,12,409\n"), "csv")
	if err != nil || h.Ops[0].Arg.String() != " 1 " || h.Ops[1].Arg.String() != "1" || h.Ops[2].Arg != h.Ops[1].Arg {
		t.Errorf("%v %+v", err, h)
	}
}

// TestCutTable checks that a table is refused if its last line may be cut off within a column that is judged.
func TestCutTable(t *testing.T) {
	const head, row = "user,action,order,began,status,took\n", "ann,purchase,o1,1767225600000,201,12"
	for log, want := range map[string]string{
		head + row + "\n": "",
		head + row:        `2:1: the last line has no newline, and may be cut off in column "took"`,
		head + strings.Replace(row, "12", `"12"`, 1):            "",
		strings.ReplaceAll(head, "\n", ",note\n") + row + ",no": "",
	} {
		_, err := mapOf(t, orders).read([]byte(log), "csv")
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", log, err, want)
		}
	}
}

// TestNoZone checks that a remark says when times without a zone are taken for UTC.
func TestNoZone(t *testing.T) {
	for format, want := range map[string]bool{"2006-01-02 15:04:05": true, "2006-01-02 15:04:05 MST": true, "2006-01-02T15:04:05Z": false, "2006-01-02T15:04:05Z07:00": false} {
		m := mapOf(t, strings.Replace(orders, "{column: began, unit: ms}", "{column: began, format: \""+format+"\"}", 1))
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Format(format)
		h, err := m.read([]byte("user,action,order,began,took,status\nann,purchase,o1,"+at+",12,201\n"), "csv")
		if err != nil || strings.Contains(strings.Join(h.Remarks, ""), "without a zone") != want {
			t.Errorf("%s: %v, %v; want a note: %v", format, err, h, want)
		}
	}
}

// TestExport checks that a history exported in Jepsen's form reads back as it was, and can also be read as a Jepsen
// history.
func TestExport(t *testing.T) {
	const text = `{"schema":"oversell-history/1","stock":3,"ttl_ns":1000,"faults":["pause 1"],"promises":[{"of":"lock","property":"mutual-exclusion"}]}
{"client":1,"kind":"acquire","key":"order","arg":"s1","outcome":"ok","call_ns":1,"return_ns":5,"until_ns":1001,"fence":7}
{"client":2,"kind":"acquire","key":"order","arg":"s2","outcome":"refused","reason":"held","call_ns":2,"return_ns":6}
{"client":1,"kind":"buy","key":"p","arg":"o \"1\"\n","outcome":"unknown","call_ns":7}
{"client":1,"kind":"release","key":"order","arg":"s1","outcome":"ok","call_ns":9,"return_ns":12,"until_ns":1001}
{"client":2,"kind":"next-id","key":"ids","outcome":"ok","result":4,"call_ns":9,"return_ns":10}
{"client":3,"kind":"fault","key":"pause 1","outcome":"ok","call_ns":3,"return_ns":8}
{"trailer":{"operations":6,"faults":[{"name":"pause 1","level":"client","fired":1,"holders":0,"waiters":0}]}}
`
	h, err := history.ReadJSONL(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var edn bytes.Buffer
	if err := WriteJepsen(&edn, h); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "h.edn")
	if err := os.WriteFile(path, edn.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	again, _, err := Read(path, "")
	if err != nil || again == nil {
		t.Fatal(again, err)
	}
	var was, is bytes.Buffer
	if err := history.WriteJSONL(&was, h); err != nil {
		t.Fatal(err)
	}
	if err := history.WriteJSONL(&is, again); err != nil {
		t.Fatal(err)
	}
	if was.String() != is.String() || again.Trailer == nil {
		t.Errorf("it reads back as\n%swant\n%s", &is, &was)
	}
	j, err := parseJepsen(edn.String())
	if err != nil || len(j.Ops) != 5 || j.Processes != 3 {
		t.Errorf("as a history of Jepsen: %v %+v\n%s", err, j, &edn)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(edn.String(), "\n"), "\n")
	var invokes, zero []string
	for _, line := range lines {
		zero = append(zero, regexp.MustCompile(`:time \d+`).ReplaceAllString(line, ":time 0"))
		if !strings.Contains(line, ":type :invoke") {
			invokes = append(invokes, line)
		}
	}
	for name, c := range map[string]struct {
		text    string
		damaged bool
	}{
		"as it was":           {edn.String(), false},
		"a vector":            {"[" + edn.String() + "]", false},
		"blanks before texts": {strings.ReplaceAll(edn.String(), ":oversell/line \"", ":oversell/line\n  \""), false},
		"a namespace":         {strings.NewReplacer("{:process :nemesis, :type :info, :f :oversell, :oversell/line", "#:oversell{:_/process :nemesis, :_/type :info, :_/f :oversell, :line").Replace(edn.String()), false},
		"blanks in JSON":      {strings.NewReplacer(`\":`, `\" : `, `,\"`, `, \"`).Replace(edn.String()), true}, // the digest covers other bytes
		"other blanks":        {strings.ReplaceAll(edn.String(), "}\n{", "},\n\n{"), false},
		"a fence":             {strings.Replace(edn.String(), `\"fence\":7`, `\"fence\":8`, 1), true},
		"a type":              {strings.Replace(edn.String(), ":type :ok", ":type :fail", 1), true},
		"a value":             {strings.Replace(edn.String(), `"order" nil`, `"other" nil`, 1), true},
		"no invocations":      {strings.Join(invokes, ""), true},
		"no times":            {strings.Join(zero, ""), true},
		"the last event":      {strings.Join(lines[:len(lines)-2], "") + lines[len(lines)-1], true},
		"one event more":      {edn.String() + lines[1], true},
		"a damaged trailer":   {strings.Replace(edn.String(), `\"operations\":6`, `\"operations\":7`, 1), true},
		"a vector, altered":   {"[" + strings.Replace(edn.String(), ":type :ok", ":type :fail", 1) + "]", true},
		"a comment before it": {strings.Repeat("; nothing\n", 50) + edn.String(), false},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil || c.damaged && c.text == edn.String() {
			t.Fatal(name, err)
		}
		again, _, err := Read(path, "")
		if err != nil || again == nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if again.Damaged != c.damaged {
			t.Errorf("%s: damaged: %v, want %v", name, again.Damaged, c.damaged)
		}
	}
}

// TestPipe checks that a history can be read from a pipe, which can be read only once.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := exec.Command("mkfifo", path).Run(); err != nil {
		t.Skip(err)
	}
	go func() { _ = os.WriteFile(path, []byte(events("0i:write=1 0o:write=1")), 0o600) }()
	if own, j, err := Read(path, ""); err != nil || own != nil || len(j.Ops) != 1 {
		t.Errorf("%v %v %v", own, j, err)
	}
}

// FuzzMap checks that no map and no log makes reading panic or hang.
func FuzzMap(f *testing.F) {
	f.Add(orders, ordersLog, "csv")
	f.Add(strings.Replace(orders, "csv", "jsonl", 1), `{"user":"ann","action":"purchase","order":"o1","began":1,"took":0.5,"status":201}`, "jsonl")
	f.Fuzz(func(t *testing.T, with, log, form string) {
		m, err := parseMap([]byte(with))
		if err != nil {
			return
		}
		h, err := m.read([]byte(log), form)
		if err == nil {
			checker.Judge(h)
		}
	})
}
