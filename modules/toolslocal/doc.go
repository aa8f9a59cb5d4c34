// Package toolslocal is the registry of tools and the pipeline that every call goes through.
//
// Row: tools, module tools-local. Provides tools.Registry; uses approval.Service when there is one.
//
// A call takes these steps, and ends early with an error at any of them:
//   - its arguments are decoded, and must survive that without loss;
//   - the tool is looked up and the arguments are validated against its schema;
//   - the hooks of BeforeExecute decide, in order of registration. To ask needs an approval.Service and a session: without, it is
//     a denial, and a yes lets the next hook decide;
//   - the tool runs, on the caller's goroutine: a call is waited for, however it ends. A panic is a failed call;
//   - its value is marshalled, validated against its schema and rendered;
//   - the hooks of AfterExecute see the result, a denial's too, and may replace or block it.
//
// Messages are read by models and are part of the protocol with them: see the tests.
//
// On stop: nothing. Rows take back what they registered, and calls belong to their callers.
//
// Limits: a tool that ignores its context holds its caller, and a goroutine that a tool starts is not guarded against
// panics.
package toolslocal
