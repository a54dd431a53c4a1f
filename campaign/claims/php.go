package claims

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"

	"oversell/target"
)

//go:embed pconnect.php
var pconnect string

// phpAnswer is what pconnect.php tells.
type phpAnswer struct {
	Error    string `json:"error"`
	Version  string `json:"version"`  // of the extension
	Closed   bool   `json:"closed"`   // the same connection after close()
	Dropped  bool   `json:"dropped"`  // the same after the object was gone
	Database bool   `json:"database"` // which still has the database that was selected
	Plain    bool   `json:"plain"`    // the same of a connection that is not persistent
}

// phpTime is how long PHP has for that.
const phpTime = 10 * time.Second

// phpReuse asks phpredis what becomes of persistent connections, or says why that cannot
// be done here.
func phpReuse(ctx context.Context, t *target.Target) (a phpAnswer, why string, err error) {
	if t.Kind == target.Address {
		return a, "it is not measured on servers that run already", nil
	}
	php, err := exec.LookPath("php")
	if err != nil {
		return a, "there is no php on this machine", nil
	}
	host, port, err := net.SplitHostPort(t.Addrs[0])
	if err != nil {
		return a, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, phpTime)
	defer cancel()
	command := exec.CommandContext(ctx, php, "--", host, port)
	command.Stdin = strings.NewReader(pconnect)
	said, err := command.Output()
	if err != nil {
		return a, "", fmt.Errorf("run php: %w", err)
	}
	if err := json.Unmarshal(said, &a); err != nil {
		return a, "", fmt.Errorf("php says %q: %w", said, err)
	}
	return a, a.Error, nil
}
