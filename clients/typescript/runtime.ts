/** Where messages come from: the output of a server, or a socket. */
export interface Reader {
  setEncoding(encoding: "utf8"): unknown;
  on(event: string, listener: (text: any) => void): unknown;
}

/** Where messages go: the input of a server, or a socket. */
export interface Writer {
  write(text: string): unknown;
  end(): unknown;
}

/** An error of a call: its code, its kind, and its data. */
export class ContextureError extends Error {
  readonly code: number;
  readonly data: { [name: string]: unknown };
  readonly kind?: Kind;

  constructor(error: { code: number; message: string; data?: { [name: string]: unknown } }) {
    super(error.message);
    this.code = error.code;
    this.data = error.data ?? {};
    this.kind = this.data.kind as Kind | undefined;
  }
}

/** A call that was sent: its id, for `cancel`, and a promise of its result. */
export interface Call<Result> {
  id: number;
  result: Promise<Result>;
}

interface Waiting {
  resolve: (result: any) => void;
  reject: (error: Error) => void;
  progress?: (params: any) => void;
}

/**
 * A connection to a server, in JSON: `new Client(server.stdout, server.stdin)` for one that was
 * spawned, `new Client(socket, socket)` for one that listens.
 */
export class Connection {
  private last = 0;
  private rest = "";
  private readonly waiting = new Map<number, Waiting>();
  private readonly handlers = new Map<string, (params: any) => void>();

  constructor(reader: Reader, private readonly writer: Writer) {
    reader.setEncoding("utf8");
    reader.on("data", (text: string) => this.read(text));
    const end = () => this.end(new Error("the server has closed the connection"));
    ["end", "close", "error"].forEach((event) => reader.on(event, end));
  }

  /** Ends the connection. */
  close(): void {
    this.writer.end();
  }

  /** Sends a call and does not wait. */
  send<Result>(method: string, params: object, progress?: (params: any) => void): Call<Result> {
    const id = ++this.last;
    const result = new Promise<Result>((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, progress });
    });
    this.writer.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
    return { id, result };
  }

  /** Calls `handler` with the parameters of each notification of a topic. */
  handle(topic: string, handler: (params: any) => void): void {
    this.handlers.set(topic, handler);
  }

  private read(text: string): void {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop()!;
    lines.filter((line) => line !== "").forEach((line) => this.take(JSON.parse(line)));
  }

  private take(message: any): void {
    if (message.method === "progress") {
      this.waiting.get(message.params.id)?.progress?.(message.params);
    } else if (message.method !== undefined) {
      this.handlers.get(message.method)?.(message.params);
    } else {
      const call = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error) call?.reject(new ContextureError(message.error));
      else call?.resolve(message.result);
    }
  }

  private end(error: Error): void {
    this.waiting.forEach((call) => call.reject(error));
    this.waiting.clear();
  }
}
