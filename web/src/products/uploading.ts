// Files on their way to the server: a few at once, and known to every view of the tab.
import { useSyncExternalStore } from "react";

/** At once; the server reads one file at a time. */
const MOST = 2;
const LEAVE_MS = 2_000;

// A page that is left aborts its requests, which says nothing about the files.
let isLeaving = false;
addEventListener("beforeunload", () => {
  isLeaving = true;
  // The person may stay.
  setTimeout(() => {
    isLeaving = false;
  }, LEAVE_MS);
});

/** A list of uploads by their keys, and the line in which they wait. */
export class Uploading<T> {
  private list: T[];
  private running = 0;
  private readonly waiting: (() => Promise<void>)[] = [];
  private readonly listeners = new Set<() => void>();

  /**
   * @param keyOf what names an upload
   * @param first uploads that are known from before
   * @param onChange told of each new list
   */
  constructor(
    private readonly keyOf: (upload: T) => string,
    first: T[] = [],
    private readonly onChange: (list: T[]) => void = () => undefined,
  ) {
    this.list = first;
  }

  readonly all = (): T[] => this.list;

  readonly subscribe = (listen: () => void): (() => void) => {
    this.listeners.add(listen);
    return () => this.listeners.delete(listen);
  };

  find(key: string): T | undefined {
    return this.list.find((each) => this.keyOf(each) === key);
  }

  /** Add an upload, in place of one with its key. */
  put(upload: T): void {
    this.change([...this.list.filter((each) => this.keyOf(each) !== this.keyOf(upload)), upload]);
  }

  set(key: string, changes: Partial<T>): void {
    this.change(this.list.map((each) => (this.keyOf(each) === key ? { ...each, ...changes } : each)));
  }

  keep(isKept: (upload: T) => boolean): void {
    this.change(this.list.filter(isKept));
  }

  /** Do the work of an upload when it is its turn. What it throws is given to `onFailed`, unless the page is left. */
  start(work: () => Promise<void>, onFailed: (problem: unknown) => void): void {
    this.waiting.push(async () => {
      try {
        await work();
      } catch (problem) {
        if (!isLeaving) onFailed(problem);
      }
    });
    this.work();
  }

  private work(): void {
    while (this.running < MOST) {
      const next = this.waiting.shift();
      if (next === undefined) return;
      this.running++;
      void next().finally(() => {
        this.running--;
        this.work();
      });
    }
  }

  private change(next: T[]): void {
    this.list = next;
    this.onChange(next);
    for (const each of this.listeners) each();
  }
}

export const useUploading = <T>(uploading: Uploading<T>): T[] => useSyncExternalStore(uploading.subscribe, uploading.all);
