// The gateway's answers: version 1 of its paths. A refusal is an error that knows its code, its words and its repair.

const BASE = "/page/v1/";

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.what ?? `the gateway answered ${status}`);
    this.status = status;
    this.why = problem.why ?? "";
    this.fix = problem.fix ?? "";
  }
}

export async function ask(path, { method = "GET", body } = {}) {
  const headers = method === "GET" ? {} : { "content-type": "application/json" };
  const answer = await fetch(BASE + path, { method, headers, body: body && JSON.stringify(body), credentials: "same-origin" });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, said);
  return said;
}

// Events until `stop` is called. The browser connects again by itself; `broken` is told when it has to.
export function listen(handlers, broken) {
  const source = new EventSource(BASE + "events");
  for (const [kind, handler] of Object.entries(handlers)) {
    source.addEventListener(kind, (event) => handler(JSON.parse(event.data)));
  }
  source.addEventListener("open", () => broken(false));
  source.addEventListener("error", () => {
    broken(true);
    // What a server refuses, the browser does not ask again.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 3000);
  });
  return () => source.close();
}
