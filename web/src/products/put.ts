// Send a file, and say how much of it is sent: `fetch` cannot say it.
import * as api from "../api";
import { token } from "../token";

// After this time without a sign, the connection is given up. The server reads a file when it has all of it.
const SILENT_MS = 60_000;
const READING_MS = 300_000;

export interface Answer<T> { status: number; body: T }

/**
 * Put a file at a path, and return the answer with its document.
 *
 * @param onSent told the part that is sent, from 0 to 1
 * @param signal aborts it
 */
export function put<T>(path: string, file: File, onSent: (done: number) => void, signal: AbortSignal): Promise<Answer<T>> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    let silence: ReturnType<typeof setTimeout> | undefined;
    const hear = (patience: number) => {
      clearTimeout(silence);
      silence = setTimeout(() => request.abort(), patience);
    };
    const stop = () => request.abort();
    const end = () => {
      clearTimeout(silence);
      signal.removeEventListener("abort", stop);
      // Without an answer the status is 0.
      if (request.status >= 200 && request.status < 300) resolve({ status: request.status, body: JSON.parse(request.responseText) as T });
      else reject(api.refusal(request.status, request.responseText));
      if (request.status === 401) api.signedOut.dispatchEvent(new Event("signedout"));
    };
    request.open("PUT", api.apiUrl + path);
    const known = token();
    if (known !== null) request.setRequestHeader("authorization", `Bearer ${known}`);
    request.setRequestHeader("content-type", "application/octet-stream");
    request.upload.onprogress = ({ loaded, total }) => {
      onSent(total === 0 ? 1 : loaded / total);
      hear(loaded < total ? SILENT_MS : READING_MS);
    };
    request.onloadend = end;
    signal.addEventListener("abort", stop);
    hear(SILENT_MS);
    request.send(file);
    if (signal.aborted) stop();
  });
}
