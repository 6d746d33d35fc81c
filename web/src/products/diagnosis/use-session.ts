// A session: its events as they come, and its state now or at a moment.
import { useCallback, useEffect, useRef, useState } from "react";
import { follow } from "../../event-stream";
import * as client from "./client";

const SETTLE_MS = 200;
const POLL_MS = 5_000;
/** The newest events that are kept. */
const MOST = 2_000;

export interface Session {
  events: client.Event[];
  last: number;
  state: client.State | null;
  /** The event after which the state is shown; null: now. */
  moment: number | null;
  setMoment: (seq: number | null) => void;
  connection: "open" | "lost" | "refused";
  problem: unknown;
  retry: () => void;
}

export function useSession(id: string): Session {
  const { events, connection } = useEvents(id);
  const [moment, setMoment] = useState<number | null>(null);
  const [state, setState] = useState<client.State | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const [attempt, setAttempt] = useState(0);
  const last = events.at(-1)?.seq ?? 0;
  const wanted = moment ?? last;

  useEffect(() => {
    let isGone = false;
    const timer = setTimeout(() => {
      client.state(id, moment ?? undefined).then(
        (found) => {
          if (isGone) return;
          setState(found);
          setProblem(null);
        },
        (error: unknown) => {
          if (!isGone) setProblem(error);
        },
      );
    }, SETTLE_MS);
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [attempt, id, moment, wanted]);

  const choose = useCallback(
    (seq: number | null) => setMoment(seq !== null && seq >= last ? null : seq),
    [last],
  );
  return {
    events, last, state, moment, setMoment: choose, connection, problem, retry: () => setAttempt((n) => n + 1),
  };
}

/** Follow the events. Where they cannot be followed, read them now and then. */
function useEvents(id: string): { events: client.Event[]; connection: Session["connection"] } {
  const [events, setEvents] = useState<client.Event[]>([]);
  const [connection, setConnection] = useState<Session["connection"]>("open");
  const last = useRef(0);
  const take = useCallback((found: client.Event[]) => {
    const fresh = found.filter((each) => each.seq > last.current);
    if (fresh.length === 0) return;
    last.current = fresh.at(-1)?.seq ?? last.current;
    setEvents((old) => [...old, ...fresh.map(client.shortened)].slice(-MOST));
  }, []);
  useEffect(() => {
    // Many events come at once: they are shown together.
    let waiting: client.Event[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      timer = undefined;
      take(waiting);
      waiting = [];
    };
    const stop = follow({
      path: client.streamPath(id),
      after: "",
      onEvent: (event) => {
        waiting.push(JSON.parse(event.data) as client.Event);
        timer ??= setTimeout(flush, 50);
      },
      onConnection: setConnection,
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [id, take]);
  useEffect(() => {
    if (connection === "open") return;
    const timer = setInterval(() => {
      if (document.hidden) return;
      // The follower says when the server is back; until then a refusal changes nothing.
      client.events(id, last.current).then((found) => take(found.events), () => undefined);
    }, POLL_MS);
    return () => clearInterval(timer);
  }, [connection, id, take]);
  return { events, connection };
}
