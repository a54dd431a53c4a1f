package foreign

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oversell/checker"
)

const lockMap = `rows: csv
promises: [{of: lock, property: mutual-exclusion}]
fields: {client: user, kind: act, arg: session, call: {column: began, %s}, %s}
outcome: {column: status, ok: [ok], unknown: [lost]}
`

// TestResolution checks that a coarse time makes operations longer, never shorter, so that it causes no violation.
func TestResolution(t *testing.T) {
	const ms, us = "unit: ms", "duration: {column: took, unit: us}"
	german := "format: \"02.01.2006 15:04:05\""
	minutes := "format: \"2006-01-02 15:04\""
	for _, c := range []struct {
		call, answer, log string
		want              checker.Result
	}{
		// b may have called late in its millisecond, and be answered after a's release.
		{ms, us, "a,acquire,s1,1000,200,ok\nb,acquire,s2,1004,250,ok\na,release,s1,1005,100,ok", checker.Holds},
		{ms, us, "a,acquire,s1,1000,200,ok\nb,acquire,s2,1002,250,ok\na,release,s1,1005,100,ok", checker.Violated},
		{german, us, "a,acquire,s1,02.01.2026 15:04:00,200,ok\nb,acquire,s2,02.01.2026 15:04:04,1200000,ok\na,release,s1,02.01.2026 15:04:06,10,ok", checker.Holds},
		{german, us, "a,acquire,s1,02.01.2026 15:04:00,200,ok\nb,acquire,s2,02.01.2026 15:04:04.5,1200000,ok\na,release,s1,02.01.2026 15:04:06,10,ok", checker.Violated},
		{minutes, us, "a,acquire,s1,2026-01-02 15:01,200,ok\nb,acquire,s2,2026-01-02 15:03,30000000,ok\na,release,s1,2026-01-02 15:04,10,ok", checker.Holds},
		{minutes, us, "a,acquire,s1,2026-01-02 15:01,200,ok\nb,acquire,s2,2026-01-02 15:03,1,ok\na,release,s1,2026-01-02 15:05,10,ok", checker.Violated},
	} {
		h, err := mapOf(t, fmt.Sprintf(lockMap, c.call, c.answer)).read([]byte("user,act,session,began,took,status\n"+c.log+"\n"), "csv")
		if err != nil {
			t.Errorf("%s: %v", c.log, err)
			continue
		}
		if v := checker.Judge(h).Verdicts[0]; (v.Result == checker.Violated) != (c.want == checker.Violated) {
			t.Errorf("%s: %v, want %v: %s", c.log, v.Result, c.want, v.Why)
		}
	}
}

// TestSameMillisecond checks that an operation that refers to an answer of the same millisecond is placed after it.
func TestSameMillisecond(t *testing.T) {
	lock := fmt.Sprintf(lockMap, "unit: ms", "return: {column: took, unit: ms}")
	other := func(of, property, fields string) string {
		return strings.NewReplacer("of: lock", "of: "+of, "mutual-exclusion", property, "arg: session", fields).Replace(lock)
	}
	for name, c := range map[string]struct {
		with, log string
		want      checker.Result
		wrong     string
	}{
		"locks":     {with: lock, log: "user,act,session,began,took,status\na,acquire,s1,1000,1000,ok\na,release,s1,1000,1000,ok\nb,acquire,s2,1000,1000,ok\nb,extend,s2,1000,1000,ok\nb,release,s2,1000,1002,ok\n", want: checker.Holds},
		"both held": {with: lock, log: "user,act,session,began,took,status\na,acquire,s1,1000,1000,ok\nb,acquire,s2,1001,1001,ok\nb,release,s2,1001,1001,ok\na,release,s1,1002,1002,ok\n", want: checker.Violated},
		"refused":   {with: strings.Replace(lock, "ok: [ok]", "refused: {late: lost}, ok: [ok]", 1), log: "user,act,session,began,took,status\na,acquire,s1,1000,1000,ok\na,release,s1,1000,1000,late\n", want: checker.Holds},
		"unknown":   {with: lock, log: "user,act,session,began,took,status\na,acquire,s1,1000,,lost\na,release,s1,1000,1000,ok\n", want: checker.Holds},
		"queues":    {with: other("queue", "no-duplicate-delivery", "arg: task, result: res, session: req"), log: "user,act,task,res,req,began,took,status\na,enqueue,t1,,,1000,1000,ok\nb,pop,,t1,r1,1000,1000,ok\nb,ack,t1,,r1,1000,1000,ok\n", want: checker.Holds},
		"requests":  {with: other("queue", "no-duplicate-delivery", "arg: task, result: res, session: req"), log: "user,act,task,res,req,began,took,status\na,enqueue,t1,,,1000,1000,ok\na,enqueue,t2,,,1001,1001,ok\nb,pop,,t1,r1,1002,1002,ok\nb,pop,,t2,r1,1002,1002,ok\nb,ack,t1,,r1,1002,1002,ok\nb,ack,t2,,r1,1003,1003,ok\n", want: checker.Holds},
		"purchases": {with: "stock: 5\n" + other("sale", "no-oversell", "arg: order, session: req"), log: "user,act,order,req,began,took,status\na,buy,o1,s1,1000,1000,ok\na,buy,o2,s1,1000,1000,ok\n", want: checker.Holds},
		"dispatch":  {with: other("dispatch", "one-holder-per-task", "arg: who, result: task, session: hold"), log: "user,act,who,task,hold,began,took,status\na,take,u1,t1,h1,1000,1000,ok\na,submit,t1,,h1,1000,1000,ok\nb,take,u2,t1,h2,1000,1000,ok\nb,submit,t1,,h2,1000,1000,ok\n", want: checker.Holds},
		"before":    {with: lock, log: "user,act,session,began,took,status\na,acquire,s1,1000,1002,ok\na,release,s1,1001,1003,ok\n", wrong: "which it refers to"},
	} {
		h, err := mapOf(t, c.with).read([]byte(c.log), "csv")
		if c.wrong != "" {
			if err == nil || !strings.HasPrefix(err.Error(), "3: ") {
				t.Errorf("%s: %v, want an error of line 3", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if v := checker.Judge(h).Verdicts[0]; (v.Result == checker.Violated) != (c.want == checker.Violated) {
			t.Errorf("%s: %v, want %v: %s", name, v.Result, c.want, v.Why)
		}
	}
}

// TestExactSeconds checks that a time in seconds is read to the nanosecond.
func TestExactSeconds(t *testing.T) {
	log := "user,act,session,began,took,status\na,acquire,s1,1767225600.522360238,1767225600.522360239,ok\n"
	h, err := mapOf(t, fmt.Sprintf(lockMap, "unit: s", "return: {column: took, unit: s}")).read([]byte(log), "csv")
	if err != nil {
		t.Fatal(err)
	}
	if op := h.Ops[0]; op.Return-op.Call != time.Nanosecond {
		t.Errorf("%v", op)
	}
}

// TestOtherLine checks that an error about two lines of a log names both.
func TestOtherLine(t *testing.T) {
	row := func(at, answer int) string {
		return fmt.Sprintf(`{"user":"a","act":"acquire","session":"s1","began":%d,"took":%d,"status":"ok"}`+"\n", at, answer)
	}
	_, err := mapOf(t, fmt.Sprintf(lockMap, "unit: ms", "return: {column: took, unit: ms}")).read([]byte(row(1000, 1001)+row(1010, 1011)), "jsonl")
	if err == nil || !strings.HasPrefix(err.Error(), "2: ") || !strings.Contains(err.Error(), "on line 1 ") {
		t.Error(err)
	}
}

// TestTextsOfALog checks that texts that are not valid Unicode, which would become equal, and fields that are given
// twice are refused.
func TestTextsOfALog(t *testing.T) {
	const header, good = "user,action,order,began,took,status\n", "ann,purchase,o1,1767225600000,12,201\n"
	const object = `{"user":"ann","action":"purchase","order":"o1","began":1767225600000,"took":12,"status":201}`
	for _, c := range []struct{ form, log, want string }{
		{"csv", header + good + "bob,purchase,K\xe4se,1767225600000,12,201\n", "3:15: the text is not UTF-8"},
		{"jsonl", object + "\n" + strings.Replace(object, "o1", "K\xf6se", 1), "2:"},
		{"jsonl", strings.Replace(object, "o1", `\ud800`, 1), "1:"},
		{"jsonl", object + " " + object, "1:94: the line continues after its JSON object"},
		{"jsonl", object + " x", "1:94: the line continues after its JSON object"},
		{"jsonl", strings.Replace(object, `"took"`, `"order":"o2","took"`, 1), `1:`},
		{"jsonl", strings.Replace(object, `"took"`, `"a":[{"b":1,"b":1}],"took"`, 1), `1:`},
	} {
		_, err := mapOf(t, strings.Replace(orders, "rows: csv", "", 1)).read([]byte(c.log), c.form)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n%v, want\n%s", c.log, err, c.want)
		}
	}
}
