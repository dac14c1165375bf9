// A model provider on loopback: it speaks OpenAI's chat API, streaming, and does one
// task: first it writes a file, then it says that it is done.
import { once } from 'node:events'
import { createServer } from 'node:http'

const STEPS = [
  { name: 'write_file', arguments: { path: 'greeting.txt', text: 'hello\n' } },
  { name: 'finish', arguments: { summary: 'The greeting is written.' } },
]

/** Starts it for as long as this process lives, and answers its address; each of its answers claims the given usage. */
export async function startModel({ tokensOut }) {
  const server = createServer(async (request, answer) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const { messages, model } = JSON.parse(Buffer.concat(chunks).toString())
    const step = STEPS[Math.min(messages.filter((each) => each.role === 'assistant').length, STEPS.length - 1)]
    const call = { index: 0, id: `call_${step.name}`, type: 'function', function: { name: step.name, arguments: JSON.stringify(step.arguments) } }
    const part = (choices, more) => `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model, choices, ...more })}\n\n`
    answer.writeHead(200, { 'Content-Type': 'text/event-stream' })
    answer.write(part([{ index: 0, delta: { role: 'assistant', tool_calls: [call] }, finish_reason: null }]))
    answer.write(part([{ index: 0, delta: {}, finish_reason: 'tool_calls' }]))
    answer.write(part([], { usage: { prompt_tokens: 100, completion_tokens: tokensOut, total_tokens: 100 + tokensOut } }))
    answer.end('data: [DONE]\n\n')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.unref()
  return `http://127.0.0.1:${server.address().port}`
}
