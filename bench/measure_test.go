package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	got := parse([]byte(`goos: linux
BenchmarkCycle/mux/1000-2         	  50000	      11.70 client-cpu-us/command	   34837 commands/s
BenchmarkRecord-16   	100	 18.5 ns/op
--- BENCH: BenchmarkCycle
BenchmarkBroken-2 one two three
PASS
`))
	if len(got) != 2 || got[0].Name != "Cycle/mux/1000" || got[0].Metrics["commands/s"] != 34837 || got[1].Metrics["ns/op"] != 18.5 {
		t.Errorf("%+v", got)
	}
	var b strings.Builder
	measured{Results: got}.table(&b)
	want := `| benchmark      | client-cpu-us/command | commands/s | ns/op |
|---             |---                    |---         |---    |
| Cycle/mux/1000 | 11.7                  | 34,837     |       |
| Record         |                       |            | 18.5  |
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestShares(t *testing.T) {
	got := shares([]byte(`Showing nodes accounting for 16.88s, 99.82% of 16.91s total
      flat  flat%   sum%        cum   cum%
     5.02s 29.69% 29.69%      5.02s 29.69%  runtime.asyncPreempt
     1.37s  8.10% 37.79%      2.65s 15.67%  oversell/load/mux.(*lane).serve
     1.01s  5.97% 43.76%      1.65s  9.76%  github.com/redis/go-redis/v9/internal/proto.(*Reader).ReadLine (inline)
     0.59s  3.49% 47.25%      1.91s 11.30%  runtime.(*cache[go.shape.struct { oversell/explore.facts uint32 }]).get
     0.01s  0.06% 47.30%      0.01s  0.06%  time.Now
`))
	want := []share{{"runtime", 33.18}, {"oversell/load/mux", 8.10}, {"github.com/redis/go-redis/v9/internal/proto", 5.97}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
