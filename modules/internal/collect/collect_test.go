package collect_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"dsh/internal/testkit"
	"dsh/modules/internal/collect"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// FuzzCollector compares a collector with the whole stream, after each of the writes that sizes stands for.
func FuzzCollector(f *testing.F) {
	f.Add(uint16(10), uint16(30), []byte{1, 9, 1, 0, 15, 4, 40})
	f.Add(uint16(0), uint16(5), []byte{1, 5, 1})
	f.Add(uint16(64), uint16(0), []byte{63, 1, 1, 64, 65, 200})
	f.Add(uint16(100), uint16(50), []byte{99, 1, 1})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, keep, spill uint16, sizes []byte) {
		keep, spill = keep%512, spill%4096
		path := filepath.Join(dir, "spill")
		defer os.Remove(path)
		c := collect.New(collect.Config{
			MaxBytes: int64(keep), SpillMaxBytes: int64(spill),
			Create:  func() (*os.File, error) { return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) },
			Trouble: func(err error) { t.Error(err) },
		})
		var whole []byte
		for i, size := range sizes {
			piece := make([]byte, size)
			for j := range piece {
				piece[j] = byte(len(whole) + j + i)
			}
			whole = append(whole, piece...)
			if n, err := c.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("write: %d, %v", n, err)
			}
			check(t, c, whole, int(keep), int(spill))
		}
		c.Seal()
		c.Seal()
		c.Write([]byte("late"))
		check(t, c, whole, int(keep), int(spill))
	})
}

func check(t *testing.T, c *collect.Collector, whole []byte, keep, spill int) {
	t.Helper()
	first := max(0, len(whole)-keep)
	got := c.Collected()
	if !bytes.Equal(got.Tail, whole[first:]) || got.Total != int64(len(whole)) || got.Truncated != (first > 0) {
		t.Fatalf("got %d bytes of %d, truncated %v, want the last %d of %d", len(got.Tail), got.Total, got.Truncated, keep, len(whole))
	}
	if want := len(whole) > keep && len(whole) <= spill; (got.SpillPath != "") != want {
		t.Fatalf("got the file %q of %d bytes with limits %d, %d", got.SpillPath, len(whole), keep, spill)
	} else if want {
		if file, err := os.ReadFile(got.SpillPath); err != nil || !bytes.Equal(file, whole) {
			t.Fatalf("the file has %d bytes, %v, want %d", len(file), err, len(whole))
		}
	}
	for _, offset := range []int{0, first - 1, first, (first + len(whole)) / 2, len(whole), len(whole) + 1} {
		p, next, lossy := c.ReadAt(int64(offset))
		from := min(max(offset, first), len(whole))
		if !bytes.Equal(p, whole[from:]) || next != int64(len(whole)) || lossy != (offset < first && first > 0 && len(whole) > offset) {
			t.Fatalf("from %d of %d: got %d bytes, %d, %v", offset, len(whole), len(p), next, lossy)
		}
	}
}

// TestTroubleStaysAway has a file that cannot be made, and one whose disk is full: the tail stays, and one call says why.
func TestTroubleStaysAway(t *testing.T) {
	for name, create := range map[string]func() (*os.File, error){
		"directory gone": func() (*os.File, error) { return os.Create(filepath.Join(t.TempDir(), "gone", "file")) },
		"disk full": func() (*os.File, error) {
			link := filepath.Join(t.TempDir(), "full")
			if err := os.Symlink("/dev/full", link); err != nil {
				return nil, err
			}
			return os.OpenFile(link, os.O_WRONLY, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat("/dev/full"); err != nil && name == "disk full" {
				t.Skip("no /dev/full")
			}
			var told []error
			c := collect.New(collect.Config{
				MaxBytes: 4, SpillMaxBytes: 1000, Create: create, Trouble: func(err error) { told = append(told, err) },
			})
			for range 3 {
				if n, err := c.Write([]byte("0123456789")); n != 10 || err != nil {
					t.Errorf("the writer has %d, %v", n, err)
				}
			}
			c.Seal()
			if got := c.Collected(); string(got.Tail) != "6789" || got.SpillPath != "" || got.Total != 30 {
				t.Errorf("got %+v", got)
			}
			if len(told) != 1 || told[0] == nil {
				t.Errorf("told %v, want one reason", told)
			}
		})
	}
}
