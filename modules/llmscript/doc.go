// Package llmscript is a model that says what a file tells it to, for demonstrations and tests without a network.
//
// Row llm-script. It provides llm.Model and needs nothing. The file is a YAML list with one step for each response:
//
//   - text: I will look.
//     tools: [{name: bash, arguments: {command: ls, description: look}}]
//   - expect: {lastToolResult: "README"}
//     reasoning: there is a README
//     text: Done.
//   - error: {code: RATE_LIMIT, message: too fast, retryAfterMs: 10}
//     delayMs: 100
//
// A step has an error, or any of reasoning, text and tools; arguments are a map, or a text that is taken as it is. delayMs is
// a wait before the response, pauseMs one after each few characters of it, and expect holds a regular expression for the last tool result that the model was shown. An
// error that may pass is tried again, with the step after it, as any model's is. What a step does not expect, and a call
// after the last step, is an error. The file is read and checked when the row starts.
package llmscript
