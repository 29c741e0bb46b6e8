package zktest

import (
	"context"
	"fmt"
	"io"

	"github.com/turnstile-go/turnstile/zktest/internal/fourletter"
	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
)

// Word answers one of ZooKeeper's four-letter words: "ruok", "envi", "srvr", "mntr", "dump" or "wchp". It is an error
// if the server is closed or does not know the word. The answer of an ensemble is the leader's, with the clients and
// watches of all servers. TCP clients can send the words, too, and get the answer of their server.
func (s *Server) Word(word string) (string, error) {
	s.made()
	if !quorum.KnownWord(word) {
		return "", fmt.Errorf("zktest: no four-letter word %q", word)
	}
	answer := ""
	err := s.state.Do(context.Background(), func(st *quorum.State) { answer = st.AnswerWord(word) })
	return answer, err
}

// Metrics returns the metrics in the answer to the word mntr, by name, as [Ensemble.Metrics] does. It
// is an error if the server is closed.
func (s *Server) Metrics() (map[string]string, error) {
	s.made()
	text, err := s.Word("mntr")
	if err != nil {
		return nil, err
	}
	return fourletter.Metrics(text), nil
}

// serveWord answers a connection that begins with a word, even through a blackhole. It returns false
// if the connection does not begin with one.
func (s *Server) serveWord(l *link) bool {
	head, err := l.in.Peek(4)
	if err != nil {
		return false
	}
	if !quorum.KnownWord(string(head)) {
		return false
	}
	if text, err := s.wordOf(l.at, string(head)); err == nil {
		_, _ = io.WriteString(l.client, text)
	}
	return true
}

// wordOf answers for one server. If the server stands still, it waits until it continues.
func (s *Server) wordOf(i int, word string) (string, error) {
	answer := make(chan string, 1)
	if err := s.state.Do(context.Background(), func(st *quorum.State) {
		st.AnswerWordOf(i, word, func(text string) { answer <- text })
	}); err != nil {
		return "", err
	}
	select {
	case text := <-answer:
		return text, nil
	case <-s.faults.done:
		return "", quorum.ErrClosed
	}
}
