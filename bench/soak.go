package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// soak is a long run at full rate: its memory use must not grow.
type soak struct {
	lasts time.Duration
	args  []string // more flags for oversell run
	plot  string   // file for the plot; empty: none
}

// sample is the memory and disk use of the process at one time.
type sample struct {
	at       time.Duration
	resident int64 // bytes of memory
	written  int64 // bytes of the history
}

// run builds the program, runs it, and samples its use every second.
func (s soak) run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "oversell-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, histories := filepath.Join(dir, "oversell"), filepath.Join(dir, "histories")
	if b, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/oversell").CombinedOutput(); err != nil {
		return fmt.Errorf("build oversell: %w\n%s", err, b)
	}
	args := append([]string{"run", "--duration", s.lasts.String(), "--out", histories, "--stop-on-violation"}, s.args...)
	fmt.Fprintln(os.Stderr, "oversell", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	samples, err := watch(cmd.Process.Pid, histories, ended)
	if err != nil {
		return err
	}
	if len(samples) == 0 {
		return fmt.Errorf("no memory could be read from /proc/%d/status, or the run ended at once", cmd.Process.Pid)
	}
	s.tell(out, samples)
	if s.plot == "" {
		return nil
	}
	return written(s.plot, func(w io.Writer) error { return s.plotted(w, samples) })
}

// watch takes samples until the process has ended.
func watch(pid int, histories string, ended <-chan error) (samples []sample, err error) {
	start, tick := time.Now(), time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			// 1 and 3 are verdicts: a promise was broken, or nothing was decided.
			if exit := new(exec.ExitError); errors.As(err, &exit) && (exit.ExitCode() == 1 || exit.ExitCode() == 3) {
				err = nil
			}
			return samples, err
		case <-tick.C:
			one := sample{at: time.Since(start), resident: resident(pid), written: size(histories)}
			if one.resident > 0 {
				samples = append(samples, one)
			}
		}
	}
}

// resident returns the memory of a process from /proc; 0: unknown.
func resident(pid int) int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == "VmRSS:" {
			kb, _ := strconv.ParseInt(words[1], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// size returns the total size of the files in a directory.
func size(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// tell writes the memory use in each tenth of the run. The last part, in which the history is judged again from its
// file, is after the load.
func (s soak) tell(w io.Writer, samples []sample) {
	fmt.Fprintf(w, "\n| minutes | resident, MB: median | most | history, MB |\n|---|---|---|---|\n")
	row := func(title string, of []sample) {
		if len(of) == 0 {
			return
		}
		var mb []int64
		for _, one := range of {
			mb = append(mb, one.resident>>20)
		}
		slices.Sort(mb)
		fmt.Fprintf(w, "| %s | %d | %d | %d |\n", title, mb[len(mb)/2], mb[len(mb)-1], of[len(of)-1].written>>20)
	}
	const parts = 10
	var in [parts + 1][]sample
	for _, one := range samples {
		n := min(int(one.at*parts/s.lasts), parts)
		in[n] = append(in[n], one)
	}
	for n, of := range in[:parts] {
		row(fmt.Sprintf("%.1f to %.1f", s.lasts.Minutes()*float64(n)/parts, s.lasts.Minutes()*float64(n+1)/parts), of)
	}
	row("after the load", in[parts])
}

// plotted draws the resident memory and the size of the history over time, and when the load ended.
func (s soak) plotted(w io.Writer, samples []sample) error {
	const left, top, width, height, points = 60, 30, 640, 220, 400
	last := samples[len(samples)-1].at
	var most, large int64
	for _, one := range samples {
		most, large = max(most, one.resident), max(large, one.written)
	}
	line := func(of func(sample) int64, scale float64) string {
		var b strings.Builder
		every := len(samples)/points + 1
		for i, one := range samples {
			if i%every > 0 && i < len(samples)-1 {
				continue
			}
			fmt.Fprintf(&b, "%.1f,%.1f ", left+width*one.at.Seconds()/last.Seconds(), top+height-height*float64(of(one))/scale)
		}
		return b.String()
	}
	memory, history := above(most), above(large)
	ended := left + width*min(s.lasts.Seconds()/last.Seconds(), 1)
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 300" font-family="sans-serif" font-size="12">
<title>Memory of oversell during %v of load, and while the history is judged once more</title>
<rect width="800" height="300" fill="white"/>
<path d="M%d %dV%dH%dV%d" fill="none" stroke="#888"/>
<polyline fill="none" stroke="#bbb" stroke-width="2" points="%s"/>
<polyline fill="none" stroke="#06c" stroke-width="2" points="%s"/>
<path d="M%.1f %dV%d" stroke="#888" stroke-dasharray="4"/><text x="%.1f" y="280" text-anchor="middle">load ends</text>
<text x="8" y="18" fill="#06c">resident, MB</text><text x="792" y="18" text-anchor="end" fill="#666">history on disk, MB</text>
<text x="%d" y="%d" text-anchor="end" fill="#06c">%.0f</text><text x="%d" y="%d" text-anchor="end" fill="#06c">0</text>
<text x="%d" y="%d" fill="#666">%.0f</text><text x="%d" y="%d" fill="#666">0</text>
<text x="%d" y="280">0</text><text x="%d" y="280" text-anchor="end">%.1f minutes</text>
</svg>
`, s.lasts, left, top, top+height, left+width, top, line(func(s sample) int64 { return s.written }, history), line(func(s sample) int64 { return s.resident }, memory),
		ended, top, top+height, ended,
		left-6, top+5, memory/(1<<20), left-6, top+height, left+width+6, top+5, history/(1<<20), left+width+6, top+height, left, left+width, last.Minutes())
	return err
}

// above returns the next round number of megabytes, in bytes.
func above(bytes int64) float64 {
	mb := math.Max(float64(bytes)/(1<<20), 1)
	step := math.Pow(10, math.Floor(math.Log10(mb)))
	return math.Ceil(mb/step) * step * (1 << 20)
}
