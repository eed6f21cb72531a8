;;; contexture-ert-wait.el --- Wait for events instead of time  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Waiting until something is so, and steps: places at which a model or a
;; server of a test stands until the test lets it go on.  So no test has to
;; sleep, and none depends on how fast the machine is.  And what all such
;; servers need: a way to write that cannot end Emacs.

;;; Code:

(require 'cl-lib)
(require 'ert)

(defcustom contexture-ert-timeout 2
  "Number of seconds after which a wait in a test fails."
  :type 'number
  :group 'contexture-ert)

;;;; Waiting

(defmacro contexture-ert-wait-for (form &rest keys)
  "Wait until FORM is non-nil and return its value; fail if it stays nil.
FORM is evaluated again after each event, such as an answer or a timer.
KEYS are :timeout SECONDS, which overrides `contexture-ert-timeout', and
:message TEXT, which the failure shows beside FORM."
  (declare (indent 1) (debug (form &rest [keywordp form])))
  `(contexture-ert-wait-until (lambda () ,form) :form ',form ,@keys))

(cl-defun contexture-ert-wait-until
    (predicate &key (timeout contexture-ert-timeout) message (form predicate))
  "Wait until PREDICATE, a function, returns non-nil; return that value.
Fail after TIMEOUT seconds, showing MESSAGE, a string or a function that
returns a list, and FORM."
  (let ((end (+ (float-time) timeout)) value)
    (while (not (setq value (funcall predicate)))
      (when (> (float-time) end)
        (ert-fail (append (if (functionp message) (funcall message)
                            (and message (list message)))
                          (list 'never-true form :after timeout))))
      ;; Output ends this pause at once; the pause is short so that timers run.
      (accept-process-output nil 0.01))
    value))

;;;; Explaining

(defun contexture-ert--explaining (explain function)
  "Call FUNCTION; if it fails, have ERT show what EXPLAIN returns, a text."
  (let* ((info (cons "" ""))
         ;; As `ert-info' does, but with a text that is made when it is needed.
         (ert--infos (cons info ert--infos))
         done)
    (unwind-protect (prog1 (funcall function) (setq done t))
      (unless done
        (setcdr info (funcall explain))))))

(defun contexture-ert--paragraph (title lines)
  "Return TITLE and LINES as text, or the empty string if there are none."
  (if lines
      (concat title ":\n"
              (mapconcat (lambda (line)
                           (concat "  " (truncate-string-to-width line 400 nil nil t)))
                         lines "\n")
              "\n")
    ""))

;;;; Steps

(defvar contexture-ert--steps nil
  "Alist from the name of a step to the function that goes on from there.
The one that was reached first comes first.")

(defun contexture-ert--stand-at (name function)
  "Have something stand at the step NAME; FUNCTION goes on from there."
  (setq contexture-ert--steps
        (append contexture-ert--steps (list (cons name function)))))

(defun contexture-ert-await-step (name)
  "Wait until a model or server of the test stands at the step NAME."
  (contexture-ert-wait-until
   (lambda () (assoc name contexture-ert--steps))
   :form (list 'at-step name)
   :message (lambda () (list 'steps-reached (mapcar #'car contexture-ert--steps)))))

(defun contexture-ert-go-on (name)
  "Let what stands at the step NAME go on; wait until something does."
  (let ((step (contexture-ert-await-step name)))
    (setq contexture-ert--steps (delq step contexture-ert--steps))
    (funcall (cdr step))))

;;;; Writing

(defun contexture-ert--send (process text)
  "Send TEXT to PROCESS, a client of a server of the test, unless it hung up.
A batch Emacs that wrote to a connection which the other side closed would
end by SIGPIPE."
  (when (contexture-ert--open-p process)
    (condition-case nil
        (process-send-string process text)
      (error (delete-process process)))))

(defun contexture-ert--open-p (process)
  "Return non-nil if the other side of PROCESS has not hung up.
To find out, read what it sent; its filter gets that later, so that
nothing overtakes the message that is being answered."
  (when (process-live-p process)
    (let ((filter (process-filter process)) chunks)
      (set-process-filter process (lambda (_ chunk) (push chunk chunks)))
      (accept-process-output process 0 nil 0)
      (set-process-filter process filter)
      (when chunks
        (run-at-time 0 nil filter process (apply #'concat (nreverse chunks))))))
  (process-live-p process))

(provide 'contexture-ert-wait)
;;; contexture-ert-wait.el ends here
