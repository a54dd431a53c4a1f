package mutants

import (
	"context"
	"fmt"
	"hash/crc32"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// zerosBefore matches zeros before a number at the end of a text.
var zerosBefore = regexp.MustCompile(`(\D)0+(\d+)$`)

// inputMutants return locks that take one name, or one token, for another, and sound ones that only
// look like it.
func inputMutants() []Lock {
	written := func(as func(string) string) lockimpl.Variant {
		return of(steps{key: func(name string) string { return lockimpl.Key(as(name)) }})
	}
	progress := entry.Breaks(variant.Progress)
	return []Lock{
		{Entry: entry.New("names-as-paths", "names are cleaned like paths", progress, ""), Variant: written(path.Clean)},
		{Entry: entry.New("names-unescaped", "escapes with % in names are read as in the path of a URL", progress, ""),
			Variant: written(func(name string) string {
				if s, err := url.PathUnescape(name); err == nil {
					return s
				}
				return name
			})},
		{Entry: entry.New("names-mended", "bytes of a name that are not UTF-8 are replaced", progress, ""),
			Variant: written(func(name string) string { return strings.ToValidUTF8(name, "\ufffd") })},
		{Entry: entry.New("names-slashes", "backslashes in names become slashes", progress, ""),
			Variant: written(func(name string) string { return strings.ReplaceAll(name, `\`, "/") })},
		{Entry: entry.New("names-cut-late", "only the first 512 bytes of a name count", progress, ""),
			Variant: written(func(name string) string { return name[:min(len(name), 512)] })},
		{Entry: entry.New("names-as-numbers", "a name that is a number is read as one", progress, ""), Variant: written(entry.AsNumber)},
		{Entry: entry.New("names-without-zeros", "zeros before a number at the end of a name are dropped", progress, ""),
			Variant: written(func(name string) string { return zerosBefore.ReplaceAllString(name, "$1$2") })},
		{Entry: entry.New("long-names-by-checksum", "names of more than a hundred bytes are kept by a checksum of 16 bits", progress, ""),
			Variant: written(func(name string) string {
				if len(name) > 100 {
					return fmt.Sprintf("%04x", crc32.ChecksumIEEE([]byte(name))&0xffff)
				}
				return name
			})},
		{Entry: entry.New("names-by-crc32", "names are kept by a checksum of 32 bits", progress, ""),
			Variant: written(func(name string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(name))) })},
		{Entry: entry.New("sound-key-of-token", "each token has a key that says which lock it holds, so it can hold one at a time", nil, ""), Variant: of(registered())},
		{Entry: entry.New("sound-deadline", "the value is the end of the lease in whole milliseconds of the server's clock, and the token", nil, ""), Variant: of(deadlines())},
		{Entry: entry.New("sound-rename", "a key named by the token is written, and renamed to that of the lock if there is none", nil, ""), Variant: of(steps{attempt: rename})},
	}
}

// registered keeps beside each lock a key for its token.
func registered() steps {
	const mine = `if redis.call('GET', KEYS[1]) ~= ARGV[1] or redis.call('GET', 'Of:' .. ARGV[1]) ~= KEYS[1] then return 0 end `
	return steps{
		attempt: takeBy(`
			if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
			redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
			redis.call('SET', 'Of:' .. ARGV[1], KEYS[1], 'PX', ARGV[2])
			return 1`),
		extend:  extendBy(mine + `redis.call('PEXPIRE', 'Of:' .. ARGV[1], ARGV[2]) return redis.call('PEXPIRE', KEYS[1], ARGV[2])`),
		release: releaseBy(mine + `return redis.call('DEL', KEYS[1], 'Of:' .. ARGV[1])`),
	}
}

// deadlines keeps the end of the lease in the value. Both the end and the present time are cut to milliseconds, so that a lease
// may end almost one early.
func deadlines() steps {
	const (
		now = `
			local time = redis.call('TIME')
			local now = time[1] * 1000 + math.floor(time[2] / 1000)
			local till, token = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+):(.*)$')
			local held = till and tonumber(till) > now `
		write = `redis.call('SET', KEYS[1], string.format('%.0f:%s', now + ARGV[2], ARGV[1])) return 1`
		mine  = `if not held or token ~= ARGV[1] then return 0 end `
	)
	return steps{
		attempt: takeBy(now + `if held then return 0 end ` + write),
		extend:  extendBy(now + mine + write),
		release: releaseBy(now + mine + `return redis.call('DEL', KEYS[1])`),
	}
}

// rename makes a key of its own into that of the lock.
func rename(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
	own := fmt.Sprintf("Own:%s", l.Token)
	if err := c.redis().Set(ctx, own, l.Token, max(o.TTL, time.Millisecond)).Err(); err != nil {
		return false, err
	}
	won, err := c.redis().RenameNX(ctx, own, c.key(l.Key)).Result()
	if err != nil || won {
		return won, err
	}
	return false, c.redis().Del(ctx, own).Err()
}
