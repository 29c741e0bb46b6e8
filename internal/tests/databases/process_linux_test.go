package databases

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// attributes has a server killed when the thread that starts it ends. A PostgreSQL server does not run as root, so root
// starts it as another user, which the directory then belongs to.
func attributes(dir string) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if os.Getuid() != 0 {
		return attr, nil
	}
	other, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(other.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(other.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, os.Chown(dir, int(uid), int(gid))
}
