package jsexpr

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dop251/goja"
)

const (
	maxHeap   = 256 << 20 // what the heap may grow by while an expression runs
	maxString = 1 << 20   // characters that one built-in may make
	maxArray  = MaxResult // elements that one built-in may make; a result holds fewer
	interval  = 5 * time.Millisecond
)

// guards refuse, in the language itself, the calls that take any amount of memory in one step.
const guards = `(function (max, maxLength) {
	const method = (owner, name, max, size) => {
		const original = owner[name];
		Object.defineProperty(owner, name, { configurable: true, writable: true, value: function (...args) {
			if (size(this, args) > max) throw new RangeError(name + ' would make too much');
			return Reflect.apply(original, this, args);
		} });
	};
	method(String.prototype, 'repeat', max, (self, args) => self.length * args[0]);
	method(String.prototype, 'padStart', max, (self, args) => args[0]);
	method(String.prototype, 'padEnd', max, (self, args) => args[0]);
	method(Array.prototype, 'fill', maxLength, (self) => self.length);
	method(Array, 'from', maxLength, (self, args) => args[0] === null || args[0] === undefined ? 0 : args[0].length);
	const isPrototypeOf = Object.prototype.isPrototypeOf;
	for (const name of ['Array', 'ArrayBuffer', 'Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array',
		'Int32Array', 'Uint32Array', 'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array']) {
		const original = globalThis[name];
		if (original === undefined) continue;
		const check = (args) => {
			if (args.length === 1 && typeof args[0] === 'number' && args[0] > maxLength) throw new RangeError(name + ' would be too long');
		};
		const guarded = new Proxy(original, {
			apply(target, self, args) { check(args); return Reflect.apply(target, self, args); },
			construct(target, args, made) { check(args); return Reflect.construct(target, args, made === guarded ? target : made); },
		});
		// The engine's own instanceof does not know a proxy for a function.
		Object.defineProperty(original, Symbol.hasInstance, { value(v) { return isPrototypeOf.call(this.prototype, v); } });
		original.prototype.constructor = guarded;
		globalThis[name] = guarded;
	}
})`

var compiledGuards = sync.OnceValue(func() *goja.Program { return goja.MustCompile("", guards, true) })

// bound installs the guards when the text can need them.
func (s *evaluation) bound(text string) error {
	if !slices.ContainsFunc([]string{"repeat", "pad", "Array", "Buffer"}, func(word string) bool { return strings.Contains(text, word) }) {
		return nil
	}
	v, err := s.vm.RunProgram(compiledGuards())
	if err != nil {
		return err
	}
	install, _ := goja.AssertFunction(v)
	_, err = install(goja.Undefined(), s.vm.ToValue(maxString), s.vm.ToValue(maxArray))
	return err
}

// watch looks at an expression every few milliseconds; one that ends before the first look costs nothing. It counts its
// looks rather than the time, so that a machine on which nothing runs for a while is no fault of the expression.
type watch struct {
	timer *time.Timer
	looks int
	base  uint64 // bytes of heap at the first look
}

func newWatch() *watch { return &watch{timer: time.NewTimer(interval)} }

func (w *watch) tick() <-chan time.Time { return w.timer.C }

func (w *watch) stop() { w.timer.Stop() }

// exceeded returns what the expression took too much of, or nil.
func (w *watch) exceeded() *Error {
	// This stops the world for some microseconds, of which only slow expressions take any; runtime/metrics would cost
	// every start of dsh more than that.
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	heap := stats.HeapAlloc
	if w.looks++; w.looks == 1 {
		w.base = heap
	}
	w.timer.Reset(interval)
	switch {
	case heap > w.base+maxHeap:
		return errMemory
	case time.Duration(w.looks)*interval >= MaxTime:
		return errTime
	}
	return nil
}
