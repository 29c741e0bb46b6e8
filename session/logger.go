package session

import "log/slog"

// Logger returns the logger given with [WithLogger], or the default.
func (m *Manager) Logger() *slog.Logger { return m.made().cfg.log }
