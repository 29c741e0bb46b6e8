//go:build linux || darwin || freebsd

package supervise

import (
	"cmp"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Find returns the path of a command's program, as execvp and with it env, timeout and shells find it: an element of PATH that
// is empty or relative counts, and without the variable PATH the system's own directories do. The error matches os.ErrNotExist
// if there is none, and otherwise says why it cannot be executed.
func Find(name, path string, known bool) (string, error) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	if !known {
		path = "/bin:/usr/bin"
	}
	var found error
	for _, dir := range strings.Split(path, ":") {
		if dir == "" {
			dir = "."
		}
		file := strings.TrimSuffix(dir, "/") + "/" + name
		err := executable(file)
		if err == nil && name != "" {
			return file, nil
		}
		if !errors.Is(err, os.ErrNotExist) && name != "" {
			found = cmp.Or(found, err)
		}
	}
	return "", cmp.Or(found, error(&os.PathError{Op: "find", Path: name, Err: unix.ENOENT}))
}

func executable(file string) error {
	info, err := os.Stat(file)
	if err == nil && info.IsDir() {
		err = unix.EISDIR
	}
	if err == nil {
		err = unix.Access(file, unix.X_OK)
	}
	if err == nil || errors.As(err, new(*os.PathError)) {
		return err
	}
	return &os.PathError{Op: "execute", Path: file, Err: err}
}
