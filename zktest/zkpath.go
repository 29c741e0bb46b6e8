package zktest

import "strings"

// validPath is PathUtils.validatePath.
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

// splitPath returns a node's parent and its name in it. The parent of what is
// at the top is "", an alias of "/". Not every request's path has a slash.
func splitPath(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// watchPath is how watches know a parent.
func watchPath(parent string) string {
	if parent == "" {
		return "/"
	}
	return parent
}

// special are the nodes that cannot be deleted.
func special(path string) bool {
	return path == "/" || path == "/zookeeper" || path == "/zookeeper/quota" || path == "/zookeeper/config"
}
