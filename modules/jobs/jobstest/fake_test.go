package jobstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"dsh/modules/jobs"
)

// defect is a promise that a fake breaks; empty: none.
type defect string

const (
	beginsFirst    defect = "begins a job before it looks at the limit"
	freesEarly     defect = "frees the place of a job that was asked to end"
	countsBegun    defect = "counts only what has been begun"
	sharesPlaces   defect = "has one limit for all"
	wastesIDs      defect = "gives an id to what fails"
	keepsPlaces    defect = "keeps the place of what failed"
	countsAll      defect = "numbers all kinds together"
	needsNobody    defect = "needs no controller"
	checksNothing  defect = "takes any spec"
	beginsForGone  defect = "begins a job for a caller who has gone"
	adoptsOrphans  defect = "keeps a job whose caller went while it was begun"
	followsCaller  defect = "ends a job with its caller's context"
	openToAll      defect = "lets any session reach a job"
	closedToOthers defect = "takes jobs without an owner for foreign"
	unknownDone    defect = "takes an unknown job for a completed one"
	hidesKnown     defect = "does not say which jobs there are"
	tornReads      defect = "reads before it looks at the state"
	dropsKilled    defect = "drops the output of a killed job"
	mute           defect = "says nothing of progress"
	killedAtOnce   defect = "takes a job for killed that was asked to end"
	killsTwice     defect = "says that it killed what had ended"
	pretends       defect = "takes a failed cancel for a cancel"
	trusts         defect = "takes any outcome"
	deafWait       defect = "waits in spite of its context"
	boundless      defect = "waits without a timeout"
	anyTimeout     defect = "takes a timeout of nothing"
	noNotice       defect = "gives no notice"
	givesTwice     defect = "gives a notice twice"
	noticesRead    defect = "gives notice of what was read"
	noticesWaited  defect = "gives notice of what was waited for"
	noticesKilled  defect = "gives notice of what was killed"
	noticesNobody  defect = "gives anybody notice of a job without an owner"
	swallows       defect = "gives no notice of what somebody had waited for in vain"
	sorts          defect = "sorts its notices by id"
	silent         defect = "tells no watcher"
	tellsAll       defect = "tells the watchers of every session"
	forgetsLate    defect = "tells no late watcher"
	keepsSession   defect = "remembers the jobs of a session that has ended"
	endsAll        defect = "ends every session's jobs with one session"
	doesNotWait    defect = "ends a session without waiting"
	startsInEnding defect = "starts jobs for a session that ends"
	oneByOne       defect = "cancels one job after the other"
	patient        defect = "lets a job take all the time that there is"
	stopLeaves     defect = "does not wait when it stops"
	stopHangs      defect = "waits for what it could not cancel"
	stopForgets    defect = "does not name what has not ended"
	startsStopped  defect = "starts jobs after its stop"
	leavesBegun    defect = "does not stop what is being begun"
)

// complaints names the check that is to notice each of them.
var complaints = map[defect]string{
	beginsFirst:    "a job over the limit is begun or takes an id",
	freesEarly:     "a killed job gives its place up before it has ended",
	countsBegun:    "starts at one moment exceed the limit",
	sharesPlaces:   "one owner takes another's place",
	wastesIDs:      "a start that fails takes an id or a place",
	keepsPlaces:    "a start that fails takes an id or a place",
	countsAll:      "ids are not counted by kind",
	needsNobody:    "a job starts that nobody can look after",
	checksNothing:  "a spec is not checked",
	beginsForGone:  "an ended context begins a job",
	adoptsOrphans:  "a caller who has gone leaves a job running",
	followsCaller:  "a job ends with the context that started it",
	openToAll:      "another session reaches a job",
	closedToOthers: "a job without an owner is closed to some",
	unknownDone:    "an unknown id passes for a job, or is not named",
	hidesKnown:     "an unknown id passes for a job, or is not named",
	tornReads:      "read at the moment of its end, a job is reported never or twice",
	dropsKilled:    "output is gone once the job is killed",
	mute:           "a job that has not ended says nothing of its progress",
	killedAtOnce:   "a job is over when it was asked to end",
	killsTwice:     "Kill of an ended job says that it did something",
	pretends:       "a job that can not be cancelled counts as stopping",
	trusts:         "an outcome that is none passes",
	deafWait:       "Wait ignores its context or takes any timeout",
	boundless:      "Wait does not return with the end or the timeout",
	anyTimeout:     "Wait ignores its context or takes any timeout",
	noNotice:       "the end of a job is not reported, or twice",
	givesTwice:     "the end of a job is not reported, or twice",
	noticesRead:    "what was read is reported again",
	noticesWaited:  "an end that was waited for is reported again",
	noticesKilled:  "a killed job is reported again",
	noticesNobody:  "a job without an owner is closed to some",
	swallows:       "a wait that was given up swallows the end",
	sorts:          "notices come in another order than the ends",
	silent:         "who watches is not told",
	tellsAll:       "who watches is not told",
	forgetsLate:    "who watches is not told",
	keepsSession:   "a session ends without its jobs",
	endsAll:        "a session ends without its jobs",
	doesNotWait:    "a session waits for ever for a job",
	startsInEnding: "a session ends without its jobs",
	oneByOne:       "the stop leaves a job, or cancels one after the other",
	patient:        "a job that takes its time keeps a session or the stop from ending",
	stopLeaves:     "the stop leaves a job, or cancels one after the other",
	stopHangs:      "the stop waits for what can not be cancelled",
	stopForgets:    "the stop does not name what has not ended",
	startsStopped:  "the stop leaves a job, or cancels one after the other",
	leavesBegun:    "the stop leaves what is being prepared",
}

// fake is a registry with one lock, which it holds nearly always.
type fake struct {
	broken defect

	mu          sync.Mutex
	stopped     bool
	ending      map[string]bool
	controllers int
	numbers     map[string]int
	all         []*fakeJob // also without an id
	notices     []*fakeJob
	watchers    map[*chan struct{}]string
}

type fakeJob struct {
	jobs.Snapshot
	work     jobs.Work
	abandon  context.CancelCauseFunc
	waiting  int
	told     bool
	noticed  bool
	finished chan struct{}
}

func newFake(broken defect) *fake {
	return &fake{broken: broken, ending: map[string]bool{}, numbers: map[string]int{}, watchers: map[*chan struct{}]string{}}
}

func (f *fake) is(d defect) bool { return f.broken == d }

func (f *fake) Control() func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.controllers++
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.controllers--
	})
}

func (f *fake) admit(s jobs.Spec) error {
	busy := 0
	for _, j := range f.all {
		if (j.Owner == s.Owner || f.is(sharesPlaces)) && !j.Status.Terminal() &&
			!(f.is(freesEarly) && j.Status == jobs.Stopping) && !(f.is(countsBegun) && j.work == nil) {
			busy++
		}
	}
	switch {
	case f.stopped && !f.is(startsStopped):
		return jobs.ErrStopped
	case f.controllers == 0 && !f.is(needsNobody):
		return jobs.ErrNoController
	case strings.TrimSpace(s.Kind) == "" && !f.is(checksNothing):
		return &jobs.InvalidError{What: "job kind", Reason: "expected a non-empty string"}
	case strings.TrimSpace(s.Label) == "":
		return &jobs.InvalidError{What: "job label", Reason: "expected a non-empty string"}
	case s.OutputLimitBytes < 0:
		return &jobs.InvalidError{What: "outputLimitBytes", Reason: "expected a positive safe integer, got -1"}
	case f.ending[s.Owner] && !f.is(startsInEnding):
		return jobs.ErrStopped
	case busy >= Limit:
		return &jobs.LimitError{Limit: Limit}
	}
	return nil
}

func (f *fake) Start(ctx context.Context, s jobs.Spec) (jobs.Snapshot, error) {
	if ctx.Err() != nil && !f.is(beginsForGone) {
		return jobs.Snapshot{}, context.Cause(ctx)
	}
	callers := ctx
	ctx, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	f.mu.Lock()
	if f.is(beginsFirst) && f.admit(s) != nil {
		if w, err := s.Run(ctx); err == nil {
			_ = w.Cancel("")
		}
	}
	if err := f.admit(s); err != nil {
		f.mu.Unlock()
		return jobs.Snapshot{}, err
	}
	j := &fakeJob{abandon: abandon, finished: make(chan struct{})}
	j.Snapshot = jobs.Snapshot{Kind: s.Kind, Label: s.Label, Owner: s.Owner, Status: jobs.Running, StartedAt: time.Now()}
	f.all = append(f.all, j)
	kind := s.Kind
	if f.is(countsAll) {
		kind = ""
	}
	if f.is(wastesIDs) {
		f.numbers[kind]++
	}
	f.mu.Unlock()

	begun := false
	defer func() {
		if !begun && !f.is(keepsPlaces) {
			f.mu.Lock()
			j.Status = jobs.Failed
			close(j.finished)
			f.mu.Unlock()
		}
	}()
	work, err := s.Run(ctx)
	if err != nil {
		return jobs.Snapshot{}, err
	}
	begun = true
	f.mu.Lock()
	defer f.mu.Unlock()
	j.work = work
	gone := context.Cause(ctx)
	if gone == nil || f.is(adoptsOrphans) {
		if !f.is(wastesIDs) {
			f.numbers[kind]++
		}
		j.ID = fmt.Sprintf("%s-%d", s.Kind, f.numbers[kind])
	}
	if f.is(followsCaller) {
		context.AfterFunc(callers, func() { _ = work.Cancel("the caller has gone") })
	}
	go f.follow(j)
	if gone != nil && !f.is(adoptsOrphans) {
		_ = work.Cancel(gone.Error())
		return jobs.Snapshot{}, gone
	}
	return j.Snapshot, nil
}

func (f *fake) follow(j *fakeJob) {
	<-j.work.Done()
	o := j.work.Outcome()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle(j, o)
}

func (f *fake) settle(j *fakeJob, o jobs.Outcome) {
	if j.FinishedAt != (time.Time{}) {
		return
	}
	if !o.Status.Terminal() && !f.is(trusts) {
		o = jobs.Outcome{Status: jobs.Failed, Detail: "no outcome"}
	}
	j.Status, j.Detail, j.FinishedAt = o.Status, o.Detail, time.Now()
	if j.waiting > 0 && f.is(swallows) {
		j.told = true
	}
	close(j.finished)
	f.offer(j)
	for c, session := range f.watchers {
		if j.ID != "" && (session == j.Owner || f.is(tellsAll)) && !f.is(silent) {
			signalled(*c)
		}
	}
}

func signalled(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (f *fake) offer(j *fakeJob) {
	if j.ID == "" || !j.Status.Terminal() || j.told || j.noticed || f.is(noNotice) {
		return
	}
	if j.Owner == "" && !f.is(noticesNobody) || j.waiting > 0 && !f.is(noticesWaited) {
		return
	}
	j.noticed = true
	f.notices = append(f.notices, j)
}

func (f *fake) tell(j *fakeJob) {
	j.told = true
	f.notices = slices.DeleteFunc(f.notices, func(n *fakeJob) bool { return n == j })
}

func (f *fake) reachable(j *fakeJob, session string) bool {
	return j.Owner == session || j.Owner == "" && !f.is(closedToOthers) || f.is(openToAll)
}

func (f *fake) reach(session, id string) (*fakeJob, error) {
	unknown := &jobs.UnknownError{ID: id}
	for _, j := range f.all {
		switch {
		case j.ID == id && id != "" && f.reachable(j, session):
			return j, nil
		case j.ID == id && id != "":
			return nil, &jobs.ForeignError{ID: id}
		case j.ID != "" && f.reachable(j, session) && !f.is(hidesKnown):
			unknown.Known = append(unknown.Known, j.ID)
		}
	}
	if f.is(unknownDone) {
		finished := make(chan struct{})
		close(finished)
		return &fakeJob{Snapshot: jobs.Snapshot{ID: id, Status: jobs.Completed}, work: NewWork(), finished: finished}, nil
	}
	return nil, unknown
}

func (f *fake) view(j *fakeJob) jobs.Snapshot {
	s := j.Snapshot
	if !s.Status.Terminal() && j.work != nil && !f.is(mute) {
		s.Detail = j.work.Progress()
	}
	return s
}

func (f *fake) List(session string) []jobs.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []jobs.Snapshot
	for _, j := range f.all {
		if j.ID != "" && f.reachable(j, session) {
			list = append(list, f.view(j))
		}
	}
	return list
}

func (f *fake) Find(session, id string) (jobs.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j, err := f.reach(session, id)
	if err != nil {
		return jobs.Snapshot{}, err
	}
	return f.view(j), nil
}

func (f *fake) Read(session, id string) (jobs.Reading, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j, err := f.reach(session, id)
	if err != nil {
		return jobs.Reading{}, err
	}
	if f.is(tornReads) {
		text := j.work.Read()
		f.mu.Unlock()
		time.Sleep(time.Millisecond)
		f.mu.Lock()
		return jobs.Reading{Text: text, Job: f.view(j)}, nil
	}
	r := jobs.Reading{Job: f.view(j), Text: j.work.Read()}
	if r.Job.Status.Terminal() && !f.is(noticesRead) {
		f.tell(j)
	}
	if r.Job.Status == jobs.Killed && f.is(dropsKilled) {
		r.Text = ""
	}
	return r, nil
}

func (f *fake) Wait(ctx context.Context, session, id string, timeout time.Duration) (jobs.Snapshot, error) {
	if timeout <= 0 && !f.is(anyTimeout) {
		return jobs.Snapshot{}, &jobs.InvalidError{What: "wait timeout", Reason: "expected more"}
	}
	if f.is(deafWait) {
		ctx = context.WithoutCancel(ctx)
	}
	if f.is(boundless) {
		timeout = 3 * time.Second
	}
	f.mu.Lock()
	j, err := f.reach(session, id)
	if err != nil {
		f.mu.Unlock()
		return jobs.Snapshot{}, err
	}
	j.waiting++
	f.mu.Unlock()
	select {
	case <-j.finished:
	case <-time.After(timeout):
	case <-ctx.Done():
	}
	if f.is(swallows) {
		time.Sleep(moment / 10) // makes sure that the end may come meanwhile
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	j.waiting--
	if ctx.Err() != nil {
		f.offer(j)
		return jobs.Snapshot{}, context.Cause(ctx)
	}
	if j.Status.Terminal() && !f.is(noticesWaited) {
		f.tell(j)
	}
	return f.view(j), nil
}

func (f *fake) Kill(session, id, reason string) (jobs.Snapshot, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j, err := f.reach(session, id)
	switch {
	case err != nil:
		return jobs.Snapshot{}, false, err
	case j.Status.Terminal():
		f.tell(j)
		return f.view(j), f.is(killsTwice), nil
	}
	if err := j.work.Cancel(reason); err != nil && !f.is(pretends) {
		return f.view(j), false, err
	}
	j.Status = jobs.Stopping
	if f.is(killedAtOnce) {
		f.settle(j, jobs.Outcome{Status: jobs.Killed})
	}
	if !f.is(noticesKilled) {
		f.tell(j)
	}
	return f.view(j), true, nil
}

func (f *fake) TakeNotices(session string) (notices []jobs.Notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var rest []*fakeJob
	for _, j := range f.notices {
		mine := j.Owner == session || j.Owner == ""
		if mine {
			notices = append(notices, jobs.Notice{Job: j.Snapshot})
		}
		if !mine || f.is(givesTwice) {
			rest = append(rest, j)
		}
	}
	f.notices = rest
	if f.is(sorts) {
		slices.SortFunc(notices, func(a, b jobs.Notice) int { return strings.Compare(a.Job.ID, b.Job.ID) })
	}
	return notices
}

func (f *fake) Watch(session string) (<-chan struct{}, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan struct{}, 1)
	f.watchers[&c] = session
	for _, j := range f.notices {
		if j.Owner == session && !f.is(forgetsLate) {
			signalled(c)
		}
	}
	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, &c)
	}
}

func (f *fake) EndSession(ctx context.Context, session string) error {
	f.mu.Lock()
	f.ending[session] = true
	f.mu.Unlock()
	mine := func(j *fakeJob) bool { return j.Owner == session || f.is(endsAll) }
	err := f.end(ctx, mine, "owner disposed", !f.is(doesNotWait))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ending[session] = false
	for _, j := range f.all {
		if mine(j) {
			f.tell(j)
		}
	}
	if !f.is(keepsSession) {
		f.all = slices.DeleteFunc(f.all, func(j *fakeJob) bool { return mine(j) && j.Status.Terminal() })
	}
	return err
}

func (f *fake) stop(ctx context.Context) error {
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	return f.end(ctx, func(*fakeJob) bool { return true }, "jobs service disposed", !f.is(stopLeaves))
}

func (f *fake) end(ctx context.Context, which func(*fakeJob) bool, reason string, wait bool) error {
	f.mu.Lock()
	var ending []*fakeJob
	for _, j := range f.all {
		if which(j) && !j.Status.Terminal() {
			ending = append(ending, j)
			j.told = true
		}
	}
	f.mu.Unlock()
	var left []string
	await := func(j *fakeJob) {
		select {
		case <-j.finished:
		case <-ctx.Done():
			left = append(left, j.ID)
		}
	}
	for _, j := range ending {
		f.mu.Lock()
		work := j.work
		if !f.is(leavesBegun) || work != nil {
			j.abandon(fmt.Errorf("%s", reason))
		}
		if work != nil {
			if err := work.Cancel(reason); err != nil && !f.is(stopHangs) {
				f.settle(j, jobs.Outcome{Status: jobs.Failed, Detail: "work may be orphaned: " + err.Error()})
			}
		}
		f.mu.Unlock()
		if f.is(oneByOne) {
			await(j)
		}
	}
	if deadline, ok := ctx.Deadline(); ok && !f.is(patient) {
		early := time.AfterFunc(time.Until(deadline)*3/4, func() {
			for _, j := range ending {
				f.mu.Lock()
				work := j.work
				f.mu.Unlock()
				if work != nil {
					work.Hurry()
				}
			}
		})
		defer early.Stop()
	}
	for _, j := range ending {
		if wait && !f.is(oneByOne) {
			await(j)
		}
	}
	switch {
	case len(left) == 0:
		return nil
	case f.is(stopForgets):
		return context.Cause(ctx)
	}
	return fmt.Errorf("left: %v: %w", left, context.Cause(ctx))
}
