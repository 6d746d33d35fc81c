// The progress of the enrichment in the background.
import { isWorking, type Found } from "./candidate";
import { w, type Word } from "./words";

const SAID: Record<string, Word> = {
  queued: "queued", running: "working", done: "done", cancelled: "cancelled", failed: "failed",
};

export function Progress({ found }: { found: Found }) {
  const { job } = found;
  if (job === null) return null;
  return (
    <div className="icp-progress" role="status">
      <p className="meta">
        {w(SAID[job.status] ?? "enrichment")}: {job.done} {w("of")} {job.total}
      </p>
      {isWorking(job) && <progress className="progress" aria-label={w("enrichment")} max={job.total} value={job.done} />}
    </div>
  );
}
