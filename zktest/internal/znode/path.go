package znode

import "strings"

// validPath reports whether ZooKeeper's PathUtils.validatePath accepts the path.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if path == "" || path[0] != '/' || path[len(path)-1] == '/' {
		return false
	}
	for _, r := range path {
		switch {
		case r <= 0x1f, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
			// Beyond the basic plane, Java sees two surrogates.
			return false
		}
	}
	for element := range strings.SplitSeq(path[1:], "/") {
		if element == "" || element == "." || element == ".." {
			return false
		}
	}
	return true
}

// SplitPath splits a path into the parent's path and the name. The parent of a node at the top is "", which stands for
// "/". It returns false for a path that has no slash, or contains a zero byte.
func SplitPath(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// WatchPath returns the path under which watches of a parent are kept: for "" it is "/".
func WatchPath(parent string) string {
	if parent == "" {
		return "/"
	}
	return parent
}

// Reserved reports whether the path is one of ZooKeeper's own nodes, which cannot be deleted.
func Reserved(path string) bool {
	return path == "/" || path == "/zookeeper" || path == "/zookeeper/quota" || path == "/zookeeper/config"
}
