// Requests about the tenant's documents.
import * as api from "../../api";
import { eventsOf } from "../../event-stream";

export interface Document { name: string; document_id: string; title: string; passages: number }
export interface Listed { documents: Document[]; next: string | null; uploading: Record<string, number> }

export const PAGE = 100;

export const list = (after: string | null): Promise<Listed> =>
  api.call("GET", `/api/documents?limit=${PAGE}${after === null ? "" : `&after=${encodeURIComponent(after)}`}`);

export const remove = (name: string): Promise<null> => api.call("DELETE", `/api/documents/${encodeURIComponent(name)}`);

/** Return the document with this name, if there is one. */
export async function find(name: string): Promise<Document | undefined> {
  const path = `/api/documents?name=${encodeURIComponent(name)}`;
  return (await api.call<Listed>("GET", path)).documents.find((each) => each.name === name);
}

/** Store a file, and say how far it is read, from 0 to 1. */
export async function store(file: File, onProgress: (done: number) => void): Promise<Document> {
  const answer = await api
    .send(`${api.apiUrl}/api/documents/${encodeURIComponent(file.name)}`, {
      method: "PUT",
      body: file,
      headers: { accept: "text/event-stream" },
    })
    .catch(() => {
      throw new api.ApiError(0, {}, "");
    });
  if (!answer.ok || answer.body === null) {
    const body = (await answer.json().catch(() => ({}))) as api.Fields;
    throw new api.ApiError(answer.status, body, String(body.detail ?? ""));
  }
  try {
    for await (const event of eventsOf(answer.body, () => undefined)) {
      const data = JSON.parse(event.data) as api.Fields;
      if (event.name === "progress") onProgress(Number(data.done));
      else if (event.name === "document") return data as unknown as Document;
      else if (event.name === "error") throw new api.ApiError(422, data, String(data.detail));
    }
  } catch (error) {
    if (error instanceof api.ApiError) throw error;
  }
  throw new api.ApiError(0, {}, "");
}
