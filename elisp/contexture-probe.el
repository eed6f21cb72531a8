;;; contexture-probe.el --- Ask a server that may not answer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The doctor's questions: to a program that should print something and
;; end, to a server connected just for the question, and to the connection
;; in use.  Each question has a time limit, does not block Emacs, and
;; leaves no process behind.  This file knows nothing about findings.
;;
;; A question to a server ends with a call of a function with OUTCOME and
;; VALUE: `answered' and the result of `server-info'; `stranger' and the
;; line that is not such an answer; `refused' and the reason; or `silent'.

;;; Code:

(require 'contexture-connection)
(require 'contexture-rpc)
(eval-when-compile (require 'subr-x))

(defvar contexture--probes nil
  "Processes and timers of the pending questions.")

(defun contexture--end-probes ()
  "End all pending questions without calling their functions."
  (dolist (probe contexture--probes)
    (if (timerp probe) (cancel-timer probe)
      (contexture--delete-process probe)))
  (setq contexture--probes nil))

(defun contexture--probe-program (command timeout function)
  "Run COMMAND, a list, for at most TIMEOUT seconds, then call FUNCTION.
Its arguments are the exit status, or `silent', or a string if COMMAND
could not be run; and the output, including stderr."
  (condition-case problem
      (let ((output ""))
        (contexture--probe
         (with-temp-buffer           ; away from buffer-local environments
           (let ((default-directory "/"))
             (make-process :name "contexture probe" :command command
                           :connection-type 'pipe :coding 'utf-8-unix
                           :noquery t)))
         timeout
         (lambda (_ text) (setq output (concat output text)) nil)
         (lambda (process)
           (funcall function
                    (if process (process-exit-status process) 'silent)
                    output))))
    (error (funcall function (error-message-string problem) ""))))

(defun contexture--probe-server (target timeout function)
  "Ask the server at TARGET for `server-info', within TIMEOUT seconds.
If TARGET is a command, start it for the question.  FUNCTION is called
as the commentary of this file says."
  (condition-case problem
      (let ((heard "")
            (process (contexture--open target)))
        (contexture--probe
         process timeout
         (lambda (_ text)
           (string-search "\n" (setq heard (concat heard text))))
         (lambda (process)
           (contexture--judge-probe heard process function))
         (lambda (process)
           (process-send-string
            process
            (concat (when-let* ((secret (contexture--secret target)))
                      (concat secret "\n"))
                    "(:id 1 :method \"server-info\")\n")))))
    (error (funcall function 'refused
                    (contexture--without-arguments problem)))))

(defun contexture--judge-probe (heard process function)
  "Call FUNCTION with the outcome of HEARD, the output of PROCESS.
PROCESS is nil if it did not answer in time."
  (let* ((line (car (split-string heard "\n")))
         (message (ignore-errors (contexture--decode line)))
         (info (plist-get message :result)))
    (cond ((and (listp info) (equal "contexture" (plist-get info :name)))
           (funcall function 'answered info))
          ((not (string-empty-p line)) (funcall function 'stranger line))
          ((null process) (funcall function 'silent nil))
          (t (funcall function 'refused
                      (or (contexture--last-words process)
                          "it closed the connection without an answer"))))))

(defun contexture--probe-connection (timeout function)
  "Ask the server in use for `server-info', within TIMEOUT seconds.
FUNCTION is called as the commentary of this file says."
  (contexture--probe-call 'server-info nil timeout function))

(defun contexture--probe-call (method params timeout function)
  "Call METHOD with PARAMS of the server in use, within TIMEOUT seconds.
FUNCTION is called as the commentary of this file says, with the result
of METHOD for VALUE."
  (let* ((connection contexture--connection)
         (timer nil)
         (end (lambda (outcome value)
                (when (memq timer contexture--probes)
                  (cancel-timer timer)
                  (setq contexture--probes (delq timer contexture--probes))
                  (funcall function outcome value))))
         (id (contexture-request-async
              method params
              :success (lambda (result) (funcall end 'answered result))
              :error (lambda (problem)
                       (funcall end 'refused (plist-get problem :message))))))
    (setq timer (run-at-time timeout nil
                             (lambda ()
                               (funcall end 'silent nil)
                               (contexture--cancel connection id))))
    (push timer contexture--probes)))

(defun contexture--probe (process timeout filter end &optional begin)
  "Watch PROCESS until it ends or FILTER returns non-nil; then call END.
FILTER gets PROCESS and a text.  END gets PROCESS, or nil after TIMEOUT
seconds.  BEGIN is called with PROCESS once it is open."
  (let* ((timer nil)
         (finish (lambda (ended)
                   (when (memq process contexture--probes)
                     (cancel-timer timer)
                     (setq contexture--probes
                           (delq timer (delq process contexture--probes)))
                     (contexture--later #'contexture--finish-probe
                                        process ended end)))))
    (set-process-filter process (lambda (process text)
                                  (when (funcall filter process text)
                                    (funcall finish t))))
    (set-process-sentinel process
                          (lambda (process _)
                            (pcase (process-status process)
                              ('open (when begin (funcall begin process)))
                              ((or 'run 'stop 'connect))
                              (_ (funcall finish t)))))
    (setq timer (run-at-time timeout nil finish nil))
    (setq contexture--probes (cons timer (cons process contexture--probes)))
    (when (and begin (memq (process-status process) '(run open)))
      (funcall begin process))))

(defun contexture--finish-probe (process ended end)
  "Call END with PROCESS, or with nil unless ENDED; then end PROCESS."
  (unwind-protect (funcall end (and ended process))
    (contexture--end-process process)))

(defun contexture--without-arguments (problem)
  "Return the message of PROBLEM, a condition, without process arguments."
  (replace-regexp-in-string ", :name, .*\\'" "" (error-message-string problem)))

(defun contexture--target-name (target)
  "Return a name for the server at TARGET."
  (pcase target
    (`(:unix ,path) path)
    (`(:tcp ,host ,port) (format "%s:%d" host port))
    (_ (abbreviate-file-name (car target)))))

(provide 'contexture-probe)
;;; contexture-probe.el ends here
