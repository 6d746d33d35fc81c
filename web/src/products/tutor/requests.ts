// Requests of the tutor's page.
import { call } from "../../api";

export interface Example { original: string; replacement: string; message: string }
export interface OfType { type: string; count: number; examples: Example[]; advice: string }
export interface Summary { issues: number; by_type: OfType[]; advice: string }
export interface Mistake {
  id: string;
  type: string;
  original: string;
  replacement: string;
  message: string;
  count: number;
}
export interface Profile { level: string | null; native_language: string | null; mistakes: Mistake[]; due: number }
export interface Exercise { id: string; type: string; sentence: string }
export interface Exercises { due: number; exercises: Exercise[] }
export interface Graded { verdict: string; recorded: boolean; right: string; message: string; due: string }

export const summary = (thread: string): Promise<Summary> => call("GET", `/tutor/threads/${thread}/summary`);
export const profile = (): Promise<Profile> => call("GET", "/tutor/profile");
export const change = (values: { level: string | null; native_language: string | null }): Promise<unknown> =>
  call("PATCH", "/tutor/profile", values);
export const erase = (): Promise<unknown> => call("DELETE", "/tutor/profile");
export const eraseMistake = (id: string): Promise<unknown> => call("DELETE", `/tutor/profile/mistakes/${encodeURIComponent(id)}`);
export const exercises = (): Promise<Exercises> => call("GET", "/tutor/exercises");
export const answer = (id: string, text: string | null): Promise<Graded> =>
  call("POST", `/tutor/exercises/${encodeURIComponent(id)}`, { answer: text });
