package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
)

// forceResult says what "break --force" has done to a node.
type forceResult string

const (
	resultDeleted  forceResult = "deleted"
	resultLeft     forceResult = "left"
	resultUnclear  forceResult = "unclear"
	resultReplaced forceResult = "replaced"
	resultFailed   forceResult = "failed"
	resultUntried  forceResult = "untried"
)

// forceBreak deletes the nodes, after a question.
func (a *App) forceBreak(ctx context.Context, t *locks.Tree, l *locks.Lock, chosen []locks.Contender, o breakOptions) error {
	chosen, err := a.agree(ctx, t, l, chosen, o.yes)
	if err != nil {
		return err
	}
	results, err := a.deleteAll(ctx, t, chosen)
	if a.JSON {
		return errors.Join(a.printJSON(forcedJSON(l.Path, chosen, results)), err)
	}
	switch codeOf(ctx, err) {
	case codeOK, codeNo, codeRefused: // the servers answer
		return errors.Join(err, a.tellNext(ctx, t, l.Path))
	}
	return err
}

func forcedJSON(p string, chosen []locks.Contender, results []forceResult) breakJSON {
	out := breakJSON{Path: p, Action: "deleted", Gone: true}
	for i, c := range chosen {
		out.Broken = append(out.Broken, brokenJSON{c, results[i]})
		out.Gone = out.Gone && results[i] != resultFailed && results[i] != resultUntried
	}
	return out
}

// agree shows the contenders and asks for a yes. It asks again if a waiter has got the lock meanwhile: the
// operator has agreed to break a waiter. It returns the contenders as they were shown last.
func (a *App) agree(ctx context.Context, t *locks.Tree, l *locks.Lock, chosen []locks.Contender, yes bool) ([]locks.Contender, error) {
	in := bufio.NewReader(a.In)
	for {
		a.introduceAll(l, chosen)
		for _, c := range chosen {
			for _, line := range consequences(l.Kind, c) {
				a.tell("  %s", line)
			}
		}
		if !yes {
			if err := a.confirm(ctx, in, count(len(chosen), "node", "nodes")); err != nil {
				return nil, err
			}
		}
		now, err := t.Update(ctx, l, locks.All)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return chosen, nil // all have left
		case err != nil:
			return nil, a.plain(clean(l.Path), err)
		}
		granted, present := grantedSince(chosen, now)
		if len(granted) == 0 {
			return chosen, nil
		}
		if yes {
			return nil, withCode(codeNo, fmt.Errorf("%s has got the lock meanwhile. Nothing was deleted", who(granted[0])))
		}
		for _, c := range granted {
			a.tell("%s has got the lock meanwhile.", who(c))
		}
		l, chosen = now, present
	}
}

// grantedSince returns the contenders that waited when they were shown and hold the lock now, and all of
// shown as they are now, without those that have left.
func grantedSince(shown []locks.Contender, now *locks.Lock) (granted, present []locks.Contender) {
	for _, c := range now.Contenders {
		i := slices.IndexFunc(shown, func(s locks.Contender) bool { return s.Path == c.Path && s.Token == c.Token })
		if i < 0 {
			continue
		}
		present = append(present, c)
		if c.Holds && !shown[i].Holds {
			granted = append(granted, c)
		}
	}
	return granted, present
}

// confirm asks for a yes.
func (a *App) confirm(ctx context.Context, in *bufio.Reader, what string) error {
	fmt.Fprintf(a.Err, "Delete %s? Type yes: ", what)
	answer := make(chan string, 1)
	go func() {
		line, _ := in.ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case text := <-answer:
		if strings.EqualFold(text, "yes") || strings.EqualFold(text, "y") {
			return nil
		}
		return withCode(codeNo, errors.New("not confirmed. Nothing was deleted"))
	case <-ctx.Done():
		fmt.Fprintln(a.Err)
		return ctx.Err()
	}
}

// deleteAll deletes the nodes of the contenders. If a node was replaced, or this identity has no right to delete it,
// deleteAll goes on with the others. Other errors concern all nodes, and end it. The exit status of its error is that
// of a failure, if there is one, and otherwise that of a replaced node.
func (a *App) deleteAll(ctx context.Context, t *locks.Tree, chosen []locks.Contender) ([]forceResult, error) {
	results := slices.Repeat([]forceResult{resultUntried}, len(chosen))
	var replaced, failed error
	for i, c := range chosen {
		err := t.Delete(ctx, c)
		switch {
		case err == nil:
			results[i] = resultDeleted
			a.tell("Deleted %s.", clean(c.Path))
		case errors.Is(err, locks.ErrGone):
			results[i] = resultLeft
			a.tell("%s has left by itself.", who(c))
		case errors.Is(err, locks.ErrUnclear):
			results[i] = resultUnclear
			a.tell("%s is gone: it was deleted, or %s left at the same moment.", clean(c.Path), who(c))
		case errors.Is(err, locks.ErrReplaced):
			results[i] = resultReplaced
			replaced = errors.Join(replaced, withCode(codeNo, fmt.Errorf("%s: %w. It was not deleted", clean(c.Path), err)))
		default:
			results[i] = resultFailed
			failed = errors.Join(failed, a.plain(clean(c.Path), a.refusedDelete(c.Path, err)))
			if !errors.Is(err, zk.ErrNoAuth) {
				return results, errors.Join(failed, replaced)
			}
		}
	}
	return results, errors.Join(failed, replaced)
}
