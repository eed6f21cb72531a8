;;; contexture-probe.el --- Ask a server that may not answer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the doctor asks with: a program that should print something and
;; end, a server that is dialled just for the question, and the
;; connection in use.  Each question has a limit of time, never waits,
;; and leaves no process behind.  This file knows nothing of findings.
;;
;; A question to a server ends in a call of a function with OUTCOME and
;; VALUE: `answered' and what `server-info' returned; `stranger' and the
;; line that is no such answer; `refused' and the reason; or `silent'.

;;; Code:

(require 'contexture-rpc)
(eval-when-compile (require 'subr-x))

(defvar contexture--probes nil
  "Processes and timers of the questions under way.")

(defun contexture--end-probes ()
  "End all questions under way; nobody is called."
  (dolist (probe contexture--probes)
    (if (timerp probe) (cancel-timer probe)
      (contexture--delete-process probe)))
  (setq contexture--probes nil))

(defun contexture--probe-program (command timeout function)
  "Run COMMAND, a list, for at most TIMEOUT seconds, then call FUNCTION.
It gets the exit status, or `silent', or a string if COMMAND could not
be run; and the output, that to stderr included."
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
  "Ask the server at TARGET what it is, within TIMEOUT seconds.
A server that is a command is started for the question.  FUNCTION is
called as the commentary of this file says."
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
            (concat (when-let ((secret (contexture--secret target)))
                      (concat secret "\n"))
                    "(:id 1 :method \"server-info\")\n")))))
    (error (funcall function 'refused
                    (contexture--without-arguments problem)))))

(defun contexture--judge-probe (heard process function)
  "Call FUNCTION with what HEARD, the text that PROCESS said, comes to.
PROCESS is nil if the time was over."
  (let* ((line (car (split-string heard "\n")))
         (message (ignore-errors (contexture--decode line)))
         (info (plist-get message :result)))
    (cond ((and (listp info) (equal "contexture" (plist-get info :name)))
           (funcall function 'answered info))
          ((not (string-empty-p line)) (funcall function 'stranger line))
          ((null process) (funcall function 'silent nil))
          (t (funcall function 'refused
                      (or (contexture--last-words process)
                          "it hung up without a word"))))))

(defun contexture--probe-connection (timeout function)
  "Ask the server in use what it is, within TIMEOUT seconds.
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
FILTER gets PROCESS and a text.  END gets PROCESS, or nil when TIMEOUT
seconds were over.  BEGIN is called with PROCESS once it is open."
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
  "Return what PROBLEM, a condition, says, without a process's arguments."
  (replace-regexp-in-string ", :name, .*\\'" "" (error-message-string problem)))

(defun contexture--target-name (target)
  "Return what to call the server at TARGET."
  (pcase target
    (`(:unix ,path) path)
    (`(:tcp ,host ,port) (format "%s:%d" host port))
    (_ (abbreviate-file-name (car target)))))

(provide 'contexture-probe)
;;; contexture-probe.el ends here
