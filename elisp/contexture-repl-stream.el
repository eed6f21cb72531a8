;;; contexture-repl-stream.el --- Draw an answer as it comes  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Thousands of pieces of an answer may arrive in a second.  They are only
;; queued on arrival, and drawn together about thirty times a second, never
;; for long, so that Emacs answers keys in between.  Garbage collection
;; waits until the user pauses.  If the server goes away during a turn, the
;; connection repeats the call, and the partial answer is removed.

;;; Code:

(require 'contexture-repl-tool)

(declare-function contexture-repl--origin-watch "contexture-repl-block" (origin) t)
(declare-function contexture-repl--send-cancel "contexture-repl-turn" (turn))
(declare-function contexture-repl--so-far "contexture-repl-turn" (turn))

(defcustom contexture-repl-show-reasoning t
  "Non-nil means show a model's reasoning before its answer."
  :type 'boolean
  :group 'contexture-repl)

(defcustom contexture-repl-gc-threshold (* 64 1024 1024)
  "Value of `gc-cons-threshold' while an answer comes in; nil leaves it alone.
A fast answer makes much garbage.  With its default threshold, Emacs
collects it several times a second, and keys wait each time.  With this
option Emacs collects it when you type nothing for a second.  If your own
value is larger, it is kept."
  :type '(choice (const :tag "Leave it alone" nil) natnum)
  :group 'contexture-repl)

(defconst contexture-repl--draw-seconds 0.03
  "Number of seconds between two drawings of the pieces of an answer.")

(defconst contexture-repl--draw-at-once 0.01
  "Number of seconds of drawing after which to check for input.")

(defconst contexture-repl--draw-characters 2000
  "Maximum number of characters of an answer to draw at once.")

(cl-defstruct (contexture-repl--turn (:constructor contexture-repl--make-turn)
                                     (:copier nil))
  "A question that is being answered in BUFFER.
TEXT is the question and QUESTION its message; KEY is its request key; ID
is that of the call on CONNECTION, nil before it is made.  ANSWER is the
message, once something has come.  The use of a tool, or a wait, divides
it into parts: EARLIER are the texts of the finished parts, and STATE is
the state of the last one, whose text begins at START.
PIECES are its drawn pieces and PENDING those to draw, each (KIND . TEXT)
or (KIND . PARAMS), the newest first; TIMER draws them.  NOTES are shown
at the end.  ASKED is non-nil if the server was asked to stop."
  buffer text question key id connection answer earlier state start pieces
  pending timer notes asked)

(defvar contexture-repl--turns nil
  "Turns that are being answered, in all buffers.")

(defvar contexture-repl--gc-before nil
  "Value of `gc-cons-threshold' before it was raised, or nil.")

(defvar contexture-repl--gc-timer nil
  "Timer that collects garbage when the user pauses.")

;;;; Garbage

(defun contexture-repl--raise-gc-threshold ()
  "Put garbage collection off, as `contexture-repl-gc-threshold' says."
  (when (and contexture-repl-gc-threshold
             (null contexture-repl--gc-before)
             (< gc-cons-threshold contexture-repl-gc-threshold))
    (setq contexture-repl--gc-before gc-cons-threshold
          gc-cons-threshold contexture-repl-gc-threshold
          contexture-repl--gc-timer
          (run-with-idle-timer 1 t #'contexture-repl--collect-garbage))))

(defun contexture-repl--collect-garbage ()
  "Collect garbage, and restore the threshold if no answer is coming in."
  (garbage-collect)
  (unless contexture-repl--turns
    (contexture-repl--restore-gc-threshold)))

(defun contexture-repl--restore-gc-threshold ()
  "Give `gc-cons-threshold' its old value, unless somebody else changed it."
  (when contexture-repl--gc-before
    (when (eql gc-cons-threshold contexture-repl-gc-threshold)
      (setq gc-cons-threshold contexture-repl--gc-before))
    (setq contexture-repl--gc-before nil)
    (cancel-timer contexture-repl--gc-timer)))

;;;; Pieces

(defun contexture-repl--progress (method params)
  "Queue the piece of an answer that METHOD with PARAMS may carry."
  (when (eq method 'progress)
    (when-let* ((turn (cl-find (plist-get params :id) contexture-repl--turns
                               :key #'contexture-repl--turn-id)))
      (pcase (plist-get params :kind)
        ((and (or :text :reasoning) kind)
         (push (cons kind (or (plist-get params :text) ""))
               (contexture-repl--turn-pending turn))
         (contexture-repl--draw-soon turn))
        ((and (or :tool-call :tool-result :approval) kind)
         (push (cons kind params) (contexture-repl--turn-pending turn))
         (contexture-repl--draw-soon turn))
        (:retry (contexture-repl--tell-of-wait turn params))
        (:status (contexture-repl--tell turn (plist-get params :text)))))))

(defun contexture-repl--tell-of-wait (turn params)
  "Show at once why TURN waits and is asked again, from PARAMS."
  (if (not (or (contexture-repl--turn-answer turn) (contexture-repl--turn-pending turn)))
      (contexture-repl--tell turn (plist-get params :text))
    (push (cons :retry params) (contexture-repl--turn-pending turn))
    (contexture-repl--draw-soon turn)))

(defun contexture-repl--tell (turn text)
  "Show TEXT, a remark about TURN, now or after an answer that has begun."
  (let ((buffer (contexture-repl--turn-buffer turn)))
    (when (and text (buffer-live-p buffer))
      (with-current-buffer buffer
        (if (or (contexture-repl--turn-answer turn)
                (contexture-repl--turn-pending turn))
            (push text (contexture-repl--turn-notes turn))
          (contexture-repl--note text))))))

(defun contexture-repl--draw-soon (turn)
  "Schedule drawing of the pieces of TURN."
  (unless (contexture-repl--turn-timer turn)
    (setf (contexture-repl--turn-timer turn)
          (run-at-time contexture-repl--draw-seconds nil
                       #'contexture-repl--draw-pending turn))))

(defun contexture-repl--draw-pending (turn)
  "Draw the pending pieces of TURN, or some if they are many."
  (when-let* ((timer (contexture-repl--turn-timer turn)))
    (cancel-timer timer)
    (setf (contexture-repl--turn-timer turn) nil))
  (when (and (contexture-repl--turn-pending turn)
             (buffer-live-p (contexture-repl--turn-buffer turn)))
    (let ((pieces (nreverse (contexture-repl--turn-pending turn)))
          (end (+ (float-time) contexture-repl--draw-at-once)))
      (setf (contexture-repl--turn-pending turn) nil)
      (with-current-buffer (contexture-repl--turn-buffer turn)
        (while (progn (setq pieces (contexture-repl--draw-some turn pieces))
                      (and pieces (< (float-time) end))))
        (contexture-repl--tell-watch turn 'more))
      (when pieces
        (setf (contexture-repl--turn-pending turn) (nreverse pieces))
        (contexture-repl--draw-soon turn)))))

(defun contexture-repl--watcher (turn)
  "Return the function that watches the answer of TURN, or nil."
  (when-let* ((origin (contexture-repl--message-origin
                       (contexture-repl--turn-question turn))))
    (contexture-repl--origin-watch origin)))

(defun contexture-repl--tell-watch (turn state &optional answer)
  "Tell whoever watches TURN of its ANSWER, by default as far as it is drawn.
STATE is `more', `done' or `failed'."
  (when-let* ((watch (contexture-repl--watcher turn)))
    (funcall watch (or answer (contexture-repl--so-far turn)) state)))

(defun contexture-repl--draw-some (turn pieces)
  "Draw the first of TURN's PIECES, and return the others."
  (if (stringp (cdar pieces))
      (contexture-repl--draw-texts turn pieces)
    (contexture-repl--draw-use turn (caar pieces) (cdar pieces))
    (cdr pieces)))

(defun contexture-repl--draw-texts (turn pieces)
  "Draw the first texts of one kind of TURN's PIECES; return the others."
  (let ((room contexture-repl--draw-characters) (kind (caar pieces)) texts)
    (while (and pieces (> room 0) (eq kind (caar pieces)))
      (let ((text (cdr (pop pieces))))
        (when (> (length text) room)
          (push (cons kind (substring text room)) pieces)
          (setq text (substring text 0 room)))
        (setq room (- room (max 1 (length text))))
        (push text texts)))
    (contexture-repl--draw turn kind (apply #'concat (nreverse texts)))
    pieces))

(defun contexture-repl--when-drawn (turn function argument)
  "Call FUNCTION with TURN and ARGUMENT once all of TURN's pieces are drawn.
If there are many pieces, that happens later, so that Emacs answers keys
in between; return non-nil in that case."
  (contexture-repl--draw-pending turn)
  (when (contexture-repl--turn-pending turn)
    (let ((buffer (current-buffer)))
      (run-at-time contexture-repl--draw-seconds nil
                   (lambda ()
                     (when (and (buffer-live-p buffer)
                                (memq turn contexture-repl--turns))
                       (with-current-buffer buffer
                         (funcall function turn argument))))))))

(defun contexture-repl--draw (turn kind text)
  "Draw TEXT, the next piece of TURN, of KIND, in this buffer."
  (unless (or (string-empty-p text)
              (and (eq kind :reasoning) (not contexture-repl-show-reasoning)))
    (contexture-repl--begin-answer turn)
    (contexture-repl--changing
      (goto-char contexture-repl--tail)
      (if (eq kind :reasoning)
          (contexture-repl--draw-reasoning turn text)
        (unless (contexture-repl--turn-state turn)
          (contexture-repl--end-line)
          (setf (contexture-repl--turn-start turn) (copy-marker (point))
                (contexture-repl--turn-state turn)
                (contexture-repl-markdown--begin
                 (contexture-repl--fixed 'contexture-message
                                         (contexture-repl--turn-answer turn)))))
        (push text (contexture-repl--turn-pieces turn))
        (contexture-repl-markdown--insert (contexture-repl--turn-state turn) text)))))

(defun contexture-repl--draw-use (turn kind params)
  "Draw the use of a tool by TURN's model, from PARAMS of KIND."
  (contexture-repl--begin-answer turn)
  (contexture-repl--end-part turn)
  (funcall (pcase kind
             (:tool-call #'contexture-repl--draw-tool-call)
             (:tool-result #'contexture-repl--draw-tool-result)
             (:retry #'contexture-repl--draw-wait)
             (_ #'contexture-repl--draw-approval))
           params 'contexture-message (contexture-repl--turn-answer turn)))

(defun contexture-repl--draw-wait (params &rest properties)
  "Draw a remark about a wait within an answer, from PARAMS, with PROPERTIES."
  (when-let* ((text (plist-get params :text)))
    (apply #'contexture-repl--note text nil properties)))

(defun contexture-repl--end-part (turn)
  "Finish the part of TURN's answer that is being drawn, if there is one."
  (when-let* ((state (contexture-repl--turn-state turn)))
    (contexture-repl--changing
      (goto-char contexture-repl--tail)
      (contexture-repl-markdown--end state))
    (push (contexture-repl--last-part turn) (contexture-repl--turn-earlier turn))
    (setf (contexture-repl--turn-state turn) nil
          (contexture-repl--turn-pieces turn) nil)))

(defun contexture-repl--last-part (turn)
  "Return the drawn text of the last part of TURN's answer."
  (apply #'concat (reverse (contexture-repl--turn-pieces turn))))

(defun contexture-repl--begin-answer (turn)
  "Draw the heading of TURN's answer, unless it is there."
  (unless (contexture-repl--turn-answer turn)
    (setf (contexture-repl--turn-answer turn)
          (contexture-repl--begin-message :assistant))))

(defun contexture-repl--draw-reasoning (turn text)
  "Draw TEXT, the reasoning of TURN's model, before the answer."
  (unless (contexture-repl--turn-state turn)
    (insert (apply #'propertize (contexture--visible text t)
                   'face 'contexture-repl-reasoning
                   'contexture-reasoning t
                   (contexture-repl--fixed 'contexture-message
                                           (contexture-repl--turn-answer turn))))))

(defun contexture-repl--asked-again ()
  "Remove the partial answers of calls that were just repeated.
The server that was answering them is gone.  Calls that were cancelled
are cancelled again."
  (dolist (turn contexture-repl--turns)
    (when (contexture-repl--turn-id turn)
      (setf (contexture-repl--turn-pending turn) nil)
      (contexture-repl--take-back turn)
      (when (contexture-repl--turn-asked turn)
        (contexture-repl--send-cancel turn)))))

(defun contexture-repl--take-back (turn)
  "Remove the drawn part of TURN's answer."
  (when (and (contexture-repl--turn-answer turn)
             (buffer-live-p (contexture-repl--turn-buffer turn)))
    (with-current-buffer (contexture-repl--turn-buffer turn)
      (contexture-repl--drop-approvals)
      (contexture-repl--delete-from (contexture-repl--turn-answer turn))
      (setf (contexture-repl--turn-answer turn) nil
            (contexture-repl--turn-earlier turn) nil
            (contexture-repl--turn-state turn) nil
            (contexture-repl--turn-pieces turn) nil)
      (contexture-repl--note "The server went away and was asked again."))))

(provide 'contexture-repl-stream)
;;; contexture-repl-stream.el ends here
