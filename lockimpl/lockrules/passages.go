package lockrules

import (
	"fmt"
	"time"
)

// Passage is time that passes at one command of a call.
type Passage struct {
	Master, Nth int  // the command, counted on its master
	Lost        bool // it is executed and has no answer, and the time passes then; else, before it is executed
	Lease       time.Duration
	Passes      time.Duration
}

func (p Passage) String() string {
	what := "before command %d to master %d was executed"
	if p.Lost {
		what = "before the loss of the answer to command %d of master %d was noticed"
	}
	return fmt.Sprintf("%v passed "+what, p.Passes, p.Nth, p.Master+1)
}

// Passages returns the commands at which time passes: the first few to one master, or the first to
// each of several.
func Passages(masters int, lease time.Duration) (all []Passage) {
	commands := 3
	if masters > 1 {
		commands = 1
	}
	for master := range masters {
		for nth := 1; nth <= commands; nth++ {
			all = append(all, Passage{master, nth, true, lease, lease * 7 / 10})
			if master+nth > 1 { // before the first, nothing was promised
				all = append(all, Passage{master, nth, false, lease, lease * 7 / 10}, Passage{master, nth, false, lease, lease * 11 / 10})
			}
		}
	}
	return all
}
