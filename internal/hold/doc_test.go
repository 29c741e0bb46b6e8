package hold

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/filelist"
)

func TestFilesAreListed(t *testing.T) { filelist.Check(t) }
