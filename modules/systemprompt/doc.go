// Package systemprompt puts together what a model is told besides the conversation, from what rows contribute.
//
// Row: system-prompt, module system-prompt. Needs nothing, so that any row can contribute; provides agent.Prompt.
//
// It contributes two sections of its own: who the model is, and the deployment's persona. In the persona, {{provider}},
// {{model}} and {{cwd}} stand for where calls go and where the session works; anything else between double braces is an
// error when the row is configured, and "{{" without "}}" is text.
//
// On stop: nothing to do; each row removes what it contributed.
package systemprompt
