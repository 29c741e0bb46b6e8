package ensembles

import (
	"os"
	"testing"
)

// TestAll runs what takes minutes, if -runs asks for it.
func TestAll(t *testing.T) {
	if *runsFlag == 0 {
		return
	}
	t.Run("RollingRestart", rollingRestart)
	t.Run("LeaderKilled", leaderKilled)
	t.Run("ObserverOnly", observerOnly)
	t.Run("ObserverAway", observerAway)
	t.Run("ServerRemoved", serverRemoved)
	t.Run("QuorumPaused", quorumPaused)
	t.Run("QuorumLost", quorumLost)
	t.Run("ReadOnly", readOnly)
	if os.Getenv(upgradeEnv) == "" {
		t.Logf("%s names no second ZooKeeper, so none is upgraded", upgradeEnv)
		return
	}
	t.Run("RollingUpgrade", rollingUpgrade)
}
