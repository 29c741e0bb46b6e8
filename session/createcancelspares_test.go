package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// The create was answered. Before its undo looks, the node is deleted and another session makes a
// node at the path. The undo must not delete that node.
func TestUndoSparesSuccessorOfPersistentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUndoing(t)
		u.giveUp(t, "/d/n", "x", session.Persistent)
		must(t, u.DeleteNode("/d/n"))
		_, err := u.other.Create(t.Context(), "/d/n", []byte("theirs"), session.Persistent)
		must(t, err)
		u.reply.Release()
		if left := u.children(t); len(left) != 1 {
			t.Errorf("the other session's node was deleted: left are %v", left)
		}
	})
}

// The same with an ephemeral node of the same session.
func TestUndoSparesOwnSecondNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUndoing(t)
		u.Delay(5 * time.Millisecond)
		u.giveUp(t, "/d/n", "x", session.Ephemeral)
		made := make(chan error, 1)
		go func() {
			if err := u.s.Delete(t.Context(), "/d/n", -1); err != nil {
				made <- err
				return
			}
			_, err := u.s.Create(t.Context(), "/d/n", []byte("second"), session.Ephemeral)
			made <- err
		}()
		time.Sleep(50 * time.Millisecond)
		u.reply.Release()
		must(t, <-made)
		if left := u.children(t); len(left) != 1 {
			t.Errorf("a create that succeeded was undone: left are %v", left)
		}
	})
}
