// Package llmopenai calls models over OpenAI's chat completions protocol, streaming, as DeepSeek, OpenAI, llama.cpp, vLLM,
// Ollama and many others speak it.
//
// Row llm. It provides llm.Model and needs subprocess.Runtime, through which it keeps the variables that may hold a key
// from every command while it runs. The key is looked up at each call, so the row starts without one: apiKeyEnv
// if that is set, else DEEPSEEK_API_KEY, else OPENAI_API_KEY. The base URL is baseURL, else the variable of the same
// family (DEEPSEEK_BASE_URL, OPENAI_BASE_URL), else the family's own address. With a baseURL of its own a row needs no
// key: servers on one's own machine have none. The model has a default, deepseek-v4-flash, at DeepSeek's own address
// alone.
//
// A call fails over nothing: what may pass is tried again up to maxRetries times, after 0.5 s, 1 s, 2 s and so on up to 10 s, or
// when the server says, if that is within a minute. A stream that stands still for streamIdleTimeoutMs has failed;
// comments that keep it alive count as movement. Responses are bounded, and the key is in no message of an error.
package llmopenai
