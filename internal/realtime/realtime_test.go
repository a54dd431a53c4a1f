package realtime

import (
	"fmt"
	"testing"
	"time"
)

func TestIn(t *testing.T) {
	now := time.Now()
	for text, want := range map[string]bool{
		"":                                     false,
		"order:17":                             false,
		fmt.Sprint(now.Unix()):                 true,
		fmt.Sprintf("a:%d:b", now.UnixMilli()): true,
		fmt.Sprintf("%f", float64(now.Add(time.Hour).UnixMicro())/1e6): true,
		fmt.Sprint(now.Add(time.Hour).UnixMicro()):                     true,
		fmt.Sprint(now.UnixNano()):                                     true,
		fmt.Sprint(now.Add(Ahead).Unix()):                              false,
		fmt.Sprint(now.Add(Ahead).UnixMilli()):                         false,
		fmt.Sprintf("%012d", now.UnixMilli()/10):                       false, // in none of the units
		"9999999999999999999999":                                       false,
	} {
		if In(text) != want {
			t.Errorf("In(%q) is %t; want %t", text, !want, want)
		}
	}
	if !Of(now.Add(time.Hour)) || Of(now.Add(Ahead)) || !Of(time.Time{}) {
		t.Error("Of takes one clock for the other")
	}
}
