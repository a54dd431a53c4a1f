package lockrules

import (
	"fmt"
	"time"
)

// Passage says at which command of a call time passes, and how much.
type Passage struct {
	Master, Nth int  // the command, counted on its master
	Lost        bool // the command is executed, its answer is lost, and then the time passes; else it passes before the command is executed
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

// Passages returns a passage at each of the first three commands to one master, or at the first command to each of several.
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
