package clock

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What asleep adds is what Go's clock lacks. So it has to be known of each system whether Go's clock
// goes on during a suspension. Go does not promise that, and its sources say it.
func TestGoClocks(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal("no Go command: ", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "src", "runtime")
	for _, c := range []struct{ file, clock string }{
		{"sys_linux_amd64.s", "// CLOCK_MONOTONIC"},
		{"sys_linux_arm64.s", "$CLOCK_MONOTONIC,"},
		{"sys_darwin_amd64.s", "libc_mach_absolute_time("}, // CLOCK_UPTIME_RAW is the same
		{"sys_darwin_arm64.s", "libc_mach_absolute_time("},
		{"sys_windows_amd64.s", "$_INTERRUPT_TIME,"},
		{"time_windows_amd64.s", "$_INTERRUPT_TIME,"},
		{"time_windows.h", "#define _INTERRUPT_TIME 0x7ffe0008"}, // KUSER_SHARED_DATA.InterruptTime, which the bias is a part of
		{"vdso_freebsd.go", "vdsoClockGettime(_CLOCK_MONOTONIC)"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, c.file)) //nolint:gosec // Go's own sources
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Contains(text, []byte(c.clock)) {
			t.Errorf("%s does not read %q any more: does Go's clock go on during a suspension?", c.file, c.clock)
		}
		for _, other := range []string{"BOOTTIME", "continuous_time", "BIAS", "Unbiased"} {
			if bytes.Contains(text, []byte(other)) {
				t.Errorf("%s reads %q: does Go's clock go on during a suspension?", c.file, other)
			}
		}
	}
}
