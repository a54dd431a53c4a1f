package redismodel

import (
	"testing"
	"time"
)

const benchNow = 1_700_000_000 * time.Second

func BenchmarkSetGetDel(b *testing.B) {
	s := Empty()
	for _, k := range []string{"a", "b", "c", "e", "f", "g", "h"} {
		s, _, _ = s.Do(benchNow, 0, []string{"SET", k, "1"})
	}
	set := []string{"set", "d", "token", "px", "1000", "nx"}
	get, del := []string{"get", "d"}, []string{"del", "d"}
	b.ReportAllocs()
	for b.Loop() {
		s1, _, _ := s.Do(benchNow, 0, set)
		s1.Do(benchNow, 0, get)
		s1.Do(benchNow, 0, del)
	}
}

func BenchmarkScript(b *testing.B) {
	s, _, _ := Empty().Do(benchNow, 0, []string{"SET", "lock", "token"})
	sha := s.Load("if redis.call('GET', KEYS[1]) == ARGV[1] then\n  return redis.call('DEL', KEYS[1])\nend\nreturn 0\n")
	cmd := []string{"evalsha", sha, "1", "lock", "token"}
	b.ReportAllocs()
	for b.Loop() {
		s.Do(benchNow, 0, cmd)
	}
}

func BenchmarkTables(b *testing.B) {
	s := Empty()
	sha := s.Load("local t = {} for i = 1, #ARGV do t[#t + 1] = ARGV[i] end return cjson.encode({items = t})")
	cmd := []string{"evalsha", sha, "0", "a", "b", "c", "d"}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, info := s.Do(benchNow, 0, cmd); info.Unknown != "" {
			b.Fatal(info.Unknown)
		}
	}
}
