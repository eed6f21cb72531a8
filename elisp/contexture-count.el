;;; contexture-count.el --- What would be sent now, counted once  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The number of tokens that a conversation would send now, and how many
;; its model takes.  Sent are the system text, the layers, the history and
;; what is being typed.  The server counts, and all places show that count: the header and the mode line of
;; the conversation, the list, the dashboard, the mode line of
;; `contexture-session-mode-line-mode', and the dry run.
;;
;; A place follows a session with `contexture-count--follow'.  Emacs never
;; waits for a count: after a change or a pause in typing it asks, and
;; until the answer is there, the text says that the count is an old one.

;;; Code:

(require 'cl-lib)
(require 'contexture-rpc)
(eval-when-compile (require 'subr-x))

(defvar contexture-manager)
(defvar contexture-repl--session)
(defvar contexture-session--topics)
(declare-function contexture-session--number "contexture-session" (number))
(declare-function contexture--managers "contexture-scope" (context))
(declare-function contexture-repl--count-params "contexture-repl-turn" ())

(defconst contexture-count--typing-pause 0.4
  "Number of seconds without typing after which the server counts.")

(defconst contexture-count--pause 0.05
  "Number of seconds after another change until the server counts.")

(cl-defstruct contexture-count--entry
  "The count of what a session would send, and how current it is."
  count    ; last answer of `count-window'
  problem  ; error of the last call, or nil
  stale    ; non-nil if something changed since the last answer
  asking   ; non-nil during a call; `again' if something changed meanwhile
  timer    ; timer for the next call
  due      ; time of the next call
  places)  ; alist from the places that show it to functions

(defvar contexture-count--entries (make-hash-table :test #'equal)
  "Hash table from the ids of sessions to their `contexture-count--entry'.")

;;;; The text

(defun contexture-count--phrase (count)
  "Return a phrase for COUNT, of `count-window' or of a dry run.
It says so if nobody knows the limit."
  (let ((tokens (or (plist-get count :tokens) 0))
        (limit (contexture-count--limit count))
        (model (plist-get count :model)))
    (cond ((not (plist-member count :limit)) ; an earlier server
           (contexture-count--tokens tokens))
          (limit
           (format "%s of %s tokens (%d %%)" (contexture-session--number tokens)
                   (contexture-session--number limit)
                   (/ (* 100 tokens) (max 1 limit))))
          (model
           (format "%s, limit unknown: model %s is not known"
                   (contexture-count--tokens tokens) (contexture--visible model)))
          (t (format "%s, limit unknown: no model is chosen"
                     (contexture-count--tokens tokens))))))

(defun contexture-count--limit (count)
  "Return the limit of the model of COUNT, or nil if nobody knows it."
  (and (not (and (plist-member count :limit-known)
                 (null (plist-get count :limit-known))))
       (plist-get count :limit)))

(defun contexture-count--tokens (tokens)
  "Return a phrase for TOKENS, a number."
  (concat (contexture-session--number tokens) (if (eql tokens 1) " token" " tokens")))

(defun contexture-count--text (id)
  "Return the phrase for the count of the session ID; \"\" before the first."
  (if-let* ((entry (gethash id contexture-count--entries)))
      (let ((count (contexture-count--entry-count entry))
            (problem (contexture-count--entry-problem entry)))
        (cond ((eql (plist-get problem :code) -32601) "") ; an earlier server
              (problem (format "not counted: %s" (plist-get problem :message)))
              ((null count) "")
              ((contexture-count--entry-stale entry)
               (concat (contexture-count--phrase count)
                       (if (contexture-running-p) ", counting..."
                         ", before the server went away")))
              (t (contexture-count--phrase count))))
    ""))

(defun contexture-count--short (id)
  "Return the count of the session ID for a mode line, or nil if unknown.
A question mark stands for a limit that nobody knows, and a tilde says
that the count is not the latest."
  (when-let* ((entry (gethash id contexture-count--entries))
              (count (contexture-count--entry-count entry)))
    (let ((limit (contexture-count--limit count)))
      (format "%s%s/%s" (if (contexture-count--entry-stale entry) "~" "")
              (contexture-session--number (plist-get count :tokens))
              (if limit (contexture-session--number limit) "?")))))

(defun contexture-count--of (id)
  "Return the last count of the session ID, or nil."
  (when-let* ((entry (gethash id contexture-count--entries)))
    (contexture-count--entry-count entry)))

;;;; Following sessions

(defun contexture-count--follow (id place redraw)
  "Keep the count of the session ID up to date for PLACE.
PLACE is a buffer or a symbol; it follows one session at a time.  REDRAW
is called without arguments, in that buffer, whenever the text changes."
  (unless (assq place (contexture-count--places id))
    (contexture-count--unfollow place)
    (when (= 0 (hash-table-count contexture-count--entries))
      (contexture-count--watch))
    (let ((entry (or (gethash id contexture-count--entries)
                     (puthash id (make-contexture-count--entry)
                              contexture-count--entries))))
      (push (cons place redraw) (contexture-count--entry-places entry))
      (contexture-count--changed id))))

(defun contexture-count--places (id)
  "Return the places that show the session ID."
  (when-let* ((entry (gethash id contexture-count--entries)))
    (contexture-count--entry-places entry)))

(defun contexture-count--unfollow (place)
  "Stop counting for PLACE."
  (maphash
   (lambda (id entry)
     (when (assq place (contexture-count--entry-places entry))
       (setf (contexture-count--entry-places entry)
             (assq-delete-all place (contexture-count--entry-places entry)))
       (unless (contexture-count--entry-places entry)
         (contexture-count--cancel entry)
         (remhash id contexture-count--entries))))
   contexture-count--entries)
  (when (= 0 (hash-table-count contexture-count--entries))
    (contexture-count--unwatch)))

(defun contexture-count--watch ()
  "Begin to follow the server."
  ;; That file loads this one, through the list.
  (require 'contexture-session)
  (contexture-watch #'contexture-count--told contexture-session--topics)
  (add-hook 'contexture-connected-hook #'contexture-count--all-changed)
  (add-hook 'contexture-disconnected-hook #'contexture-count--all-changed))

(defun contexture-count--unwatch ()
  "Stop following the server, as `contexture-count--watch' began to."
  (contexture-unwatch #'contexture-count--told)
  (remove-hook 'contexture-connected-hook #'contexture-count--all-changed)
  (remove-hook 'contexture-disconnected-hook #'contexture-count--all-changed))

(defun contexture-count--told (method params)
  "Count again what a notification of METHOD with PARAMS concerns."
  (cond ((memq method '(context-changed providers-changed))
         (contexture-count--all-changed))
        ((memq method contexture-session--topics)
         (contexture-count--changed (plist-get params :session-id)))))

(defun contexture-count--all-changed (&rest _)
  "Count every session again that some place shows."
  (dolist (id (hash-table-keys contexture-count--entries))
    (contexture-count--changed id)))

;;;; Asking

(defun contexture-count--changed (id &optional typing)
  "Note a change of what the session ID would send.
The server counts again soon, or after a pause if TYPING."
  (when-let* ((entry (gethash id contexture-count--entries)))
    (let ((pause (if typing contexture-count--typing-pause contexture-count--pause))
          (was-stale (contexture-count--entry-stale entry)))
      (setf (contexture-count--entry-stale entry) t
            (contexture-count--entry-due entry) (+ (float-time) pause))
      (unless (contexture-count--entry-timer entry)
        (contexture-count--start id entry pause))
      (unless was-stale (contexture-count--redraw entry)))))

(defun contexture-count--start (id entry pause)
  "Ask for the count of the session ID, with ENTRY, after PAUSE seconds."
  (setf (contexture-count--entry-timer entry)
        (run-at-time pause nil #'contexture-count--due id entry)))

(defun contexture-count--due (id entry)
  "Ask for the count of the session ID, with ENTRY, unless typing goes on."
  (setf (contexture-count--entry-timer entry) nil)
  (let ((left (- (contexture-count--entry-due entry) (float-time))))
    (cond ((> left 0.01) (contexture-count--start id entry left))
          ((contexture-count--entry-asking entry)
           (setf (contexture-count--entry-asking entry) 'again))
          ((contexture-running-p) (contexture-count--ask id entry)))))

(defun contexture-count--ask (id entry)
  "Ask the server for the count of the session ID, with ENTRY."
  (setf (contexture-count--entry-asking entry) t)
  (contexture-request-async
   'count-window (contexture-count--params id)
   :success (lambda (count) (contexture-count--answered id entry count nil))
   :error (lambda (problem) (contexture-count--answered id entry nil problem))))

(defun contexture-count--params (id)
  "Return the parameters for counting the session ID.
What is typed and chosen in its conversation is part of them."
  (let ((buffer (contexture-count--conversation id)))
    (if buffer
        (with-current-buffer buffer (contexture-repl--count-params))
      (list :session id))))

(defun contexture-count--conversation (id)
  "Return the buffer of the conversation in the session ID, or nil."
  (cl-find-if (lambda (buffer)
                (and (eq (buffer-local-value 'major-mode buffer) 'contexture-repl-mode)
                     (equal id (plist-get (buffer-local-value 'contexture-repl--session
                                                              buffer)
                                          :id))))
              (buffer-list)))

(defun contexture-count--conversation-of (context)
  "Return the conversation that sends CONTEXT, as (ID . NAME), or nil.
CONTEXT is a manager or layers.  Of several, it is the one shown last."
  (cl-some
   (lambda (buffer)
     (when (eq (buffer-local-value 'major-mode buffer) 'contexture-repl-mode)
       (let ((session (buffer-local-value 'contexture-repl--session buffer))
             (managers (contexture--managers
                        (buffer-local-value 'contexture-manager buffer))))
         (and (plist-get session :id)
              (cl-subsetp (contexture--managers context) managers :test #'equal)
              (cons (plist-get session :id) (plist-get session :session))))))
   (buffer-list)))

(defun contexture-count--answered (id entry count problem)
  "Show COUNT or PROBLEM, the answer for the session ID with ENTRY."
  (let ((again (eq (contexture-count--entry-asking entry) 'again)))
    (setf (contexture-count--entry-asking entry) nil
          (contexture-count--entry-problem entry) problem)
    (when count (setf (contexture-count--entry-count entry) count))
    (when (contexture-count--entry-places entry)
      (if again
          (contexture-count--ask id entry)
        (unless (contexture-count--entry-timer entry)
          (setf (contexture-count--entry-stale entry) nil)))
      (contexture-count--redraw entry))))

(defun contexture-count--redraw (entry)
  "Redraw the places that show ENTRY; forget those that are gone."
  (pcase-dolist (`(,place . ,redraw) (contexture-count--entry-places entry))
    (cond ((not (bufferp place)) (funcall redraw))
          ((buffer-live-p place) (with-current-buffer place (funcall redraw)))
          (t (contexture-count--unfollow place)))))

(defun contexture-count--cancel (entry)
  "Cancel the timer of ENTRY."
  (when (contexture-count--entry-timer entry)
    (cancel-timer (contexture-count--entry-timer entry))
    (setf (contexture-count--entry-timer entry) nil)))

(provide 'contexture-count)
;;; contexture-count.el ends here
