;;; contexture-ert-exchange.el --- Recorded exchanges, played again  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A recording holds one conversation with the server: lines from Emacs
;; after "> ", lines from the server after "< ", comments after ";".
;; This file reads and writes recordings, and plays the server's part of
;; one over a socket on which Emacs itself listens.  It knows nothing
;; about tests; contexture-ert.el does.
;;
;; Two things differ between a recording and its replay.  The client
;; numbers its calls anew.  And the test's folder has a new name each
;; time, so a recording has a fixed name in its place.

;;; Code:

(require 'cl-lib)
(require 'contexture-ert-wait)
(require 'contexture-wire)
(eval-when-compile (require 'subr-x))

(defconst contexture-ert--placeholder "/contexture-ert/"
  "Placeholder for the test's folder in a recorded exchange.")

(defconst contexture-ert--home-placeholder "/contexture-home/"
  "Placeholder for the folder of the test's server in a recorded exchange.")

(cl-defstruct (contexture-ert--exchange
               (:constructor contexture-ert--make-exchange) (:copier nil))
  "An exchange that is being played.
ENTRIES are those to come, each (DIRECTION LINE NUMBER); IDS maps the
recorded id of a call to the client's; PROBLEM says what differed from
the recording, or is nil.  If STEPWISE, functions that send the next
messages wait in HELD."
  file entries ids problem stepwise held)

;;;; Files

(defun contexture-ert--read-exchange (file directory)
  "Return the exchange in FILE, with DIRECTORY (or nil) as the test's folder."
  (unless (file-exists-p file)
    (error "There is no recording %s; make it with CONTEXTURE_ERT_RECORD=1" file))
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8-unix) (number 0) entries)
      (insert-file-contents file)
      (dolist (line (split-string (buffer-string) "\n"))
        (cl-incf number)
        (pcase (and (>= (length line) 2) (substring line 0 2))
          ("> " (push (list 'sent (substring line 2) number) entries))
          ("< " (push (list 'received (substring line 2) number) entries))
          (_ (unless (string-match-p "\\`\\(?:;\\|\\'\\)" line)
               (error "%s:%d: a line begins with \"> \", \"< \" or \";\""
                      file number)))))
      (contexture-ert--make-exchange
       :file file
       :entries (mapcar (lambda (entry)
                          (contexture-ert--translate
                           entry contexture-ert--placeholder directory))
                        (nreverse entries))))))

(defun contexture-ert--translate (entry from to)
  "Replace the folder FROM with TO in the line of ENTRY, unless one is nil.
Both end in a slash; the folder's name without it is replaced, too."
  (if (and from to)
      (cons (car entry)
            (cons (replace-regexp-in-string
                   (concat (regexp-quote (directory-file-name from))
                           "\\(?:/\\|\\([^[:alnum:]._-]\\)\\|\\'\\)")
                   (lambda (match)
                     (if (string-suffix-p "/" match) to
                       (concat (directory-file-name to)
                               (substring match (length (directory-file-name from))))))
                   (cadr entry) t t)
                  (cddr entry)))
    entry))

(defun contexture-ert--decode (line)
  "Return the message that LINE holds, or nil if it holds none.
A line with something after the message holds none; the server refuses
such a line, too."
  (condition-case nil
      (when-let* ((message (contexture--decode line)))
        (and (string-blank-p (substring line (cdr (read-from-string line))))
             message))
    (contexture-unreadable nil)))

(defun contexture-ert--plist-without (plist key)
  "Return PLIST without KEY."
  (cl-loop for (each value) on plist by #'cddr
           unless (eq each key) nconc (list each value)))

;;;; Playing

(defun contexture-ert--serve-exchange (exchange socket)
  "Listen on SOCKET, a file name, and play EXCHANGE to its client."
  (make-network-process
   :name "contexture replay" :server t :family 'local :service socket
   :coding 'utf-8-unix :noquery t :sentinel #'ignore
   :filter (lambda (process chunk)
             (contexture-ert--hear exchange process chunk))))

(defun contexture-ert--hear (exchange process chunk)
  "Answer, from EXCHANGE, the lines that CHUNK from PROCESS completes."
  (let ((lines (split-string
                (concat (process-get process 'contexture-ert-rest) chunk) "\n")))
    (process-put process 'contexture-ert-rest (car (last lines)))
    (dolist (line (butlast lines))
      (contexture-ert--answer exchange process line))))

(defun contexture-ert--answer (exchange process line)
  "Send PROCESS the lines after LINE in EXCHANGE, or an error if it is not next.
Calls that the client makes by itself need not be in EXCHANGE."
  (let* ((entry (car (contexture-ert--exchange-entries exchange)))
         (message (contexture-ert--decode line))
         (id (plist-get message :id)))
    (cond
     ((contexture-ert--expected-p
       (and entry (cons (car entry)
                        (cons (contexture-ert--renumbered
                               (cadr entry) (contexture-ert--exchange-ids exchange))
                              (cddr entry))))
       line message)
      (pop (contexture-ert--exchange-entries exchange))
      (when id
        (push (cons (plist-get (contexture-ert--decode (cadr entry)) :id) id)
              (contexture-ert--exchange-ids exchange)))
      (contexture-ert--go-on exchange process))
     ((contexture-ert--greeting message)
      (contexture-ert--say process (list :id id :result
                                         (contexture-ert--greeting message)))
      (contexture-ert--go-on exchange process))
     (t
      (let ((problem (contexture-ert--otherwise exchange entry line)))
        (unless (contexture-ert--exchange-problem exchange)
          (setf (contexture-ert--exchange-problem exchange) problem))
        (when id
          (contexture-ert--say
           process (list :id id :error (list :code -32603 :message problem)))))))))

(defun contexture-ert--expected-p (entry line message)
  "Return non-nil if ENTRY matches LINE, which holds MESSAGE (or nil)."
  (and (eq (car entry) 'sent)
       (or (equal (cadr entry) line)
           (let ((recorded (contexture-ert--decode (cadr entry))))
             (and message recorded
                  (eq (null (plist-get message :id))
                      (null (plist-get recorded :id)))
                  (equal (format "%s" (plist-get message :method))
                         (format "%s" (plist-get recorded :method)))
                  (contexture-ert--alike-p
                   (contexture-ert--plist-without (plist-get message :params)
                                                  :request-key)
                   (plist-get recorded :params)))))))

(defun contexture-ert--alike-p (one other)
  "Return non-nil if ONE and OTHER are equal but for the order of keys.
A key whose value is nil counts as absent."
  (if (and (contexture-ert--plist-p one) (contexture-ert--plist-p other))
      (cl-loop for key in (append (contexture-ert--keys one)
                                  (contexture-ert--keys other))
               always (contexture-ert--alike-p (plist-get one key)
                                               (plist-get other key)))
    (equal one other)))

(defun contexture-ert--plist-p (value)
  "Return non-nil if VALUE is a property list with keywords, perhaps empty."
  (and (proper-list-p value)
       (cl-evenp (length value))
       (cl-every #'keywordp (contexture-ert--keys value))))

(defun contexture-ert--keys (plist)
  "Return the keys of PLIST."
  (cl-loop for key in plist by #'cddr collect key))

(defun contexture-ert--greeting (message)
  "Return the answer to MESSAGE if it is a call that no recording has."
  (when (plist-get message :id)
    (pcase (plist-get message :method)
      ("ping" :pong)
      ("configure-provider" (list :name (plist-get (plist-get message :params) :name)))
      ("server-info" '(:name "contexture" :version "replay"))
      ("subscribe" (list :topics (plist-get (plist-get message :params) :topics))))))

(defun contexture-ert--go-on (exchange process)
  "Send PROCESS the lines of EXCHANGE up to the client's next line."
  (while (eq (caar (contexture-ert--exchange-entries exchange)) 'received)
    (let* ((entry (pop (contexture-ert--exchange-entries exchange)))
           (line (contexture-ert--renumbered
                  (cadr entry) (contexture-ert--exchange-ids exchange)))
           (say (lambda ()
                  (contexture-ert--send process (concat line "\n"))
                  line)))
      (if (contexture-ert--exchange-stepwise exchange)
          (setf (contexture-ert--exchange-held exchange)
                (append (contexture-ert--exchange-held exchange) (list say)))
        (funcall say)))))

(defconst contexture-ert--id-regexps
  (let ((id "\\([^\" ()]+\\|\"\\(?:[^\"\\]\\|\\\\.\\)*\"\\)"))
    (list (concat "\\`(:id " id)
          (concat "\\`(\\(?::id [^ ]+ \\)?:method \"?\\(?:progress\\|cancel\\)\"? :params (:id "
                  id)))
  "Regexps for the beginning of a line up to its id, or that of another call.")

(defun contexture-ert--renumbered (line ids)
  "Return LINE with the ids of calls replaced by those that IDS has for them.
The rest of LINE stays as it is, byte for byte."
  (dolist (regexp contexture-ert--id-regexps line)
    (when-let* ((new (and (string-match regexp line)
                          (cdr (assoc (read (match-string 1 line)) ids)))))
      (setq line (replace-match (format "%S" new) t t line 1)))))

(defun contexture-ert--say (process message)
  "Send MESSAGE, a property list, to PROCESS."
  (contexture-ert--send process (car (contexture--encode message))))

(defun contexture-ert--otherwise (exchange entry line)
  "Return a message that Emacs sent LINE where EXCHANGE has ENTRY (or nil)."
  (let* ((line (contexture--redact line))
         (message (contexture-ert--decode line))
         (recorded (and entry (contexture-ert--decode (cadr entry))))
         (later (contexture-ert--find-later exchange line message)))
    (concat
     (contexture-ert--exchange-file exchange)
     (if entry
         (format ":%d: next comes %s" (nth 2 entry) (cadr entry))
       ": the recording ends here")
     (format ", but Emacs said %s" line)
     (cond
      (later (format "\nwhich the recording has in line %d" later))
      ((and recorded (equal (contexture-ert--method-name recorded)
                            (contexture-ert--method-name message)))
       (mapconcat (lambda (difference)
                    (pcase-let ((`(,path ,was ,is) difference))
                      (format "\n  %s: recorded %S, now %S"
                              (mapconcat #'symbol-name path " ") was is)))
                  (contexture-ert--differences
                   (plist-get recorded :params)
                   (contexture-ert--plist-without (plist-get message :params)
                                                  :request-key))
                  ""))
      (t "")))))

(defun contexture-ert--method-name (message)
  "Return the name of the method that MESSAGE calls."
  (format "%s" (plist-get message :method)))

(defun contexture-ert--find-later (exchange line message)
  "Return the number of the line in EXCHANGE that LINE, with MESSAGE, matches."
  (nth 2 (cl-find-if (lambda (entry)
                       (contexture-ert--expected-p entry line message))
                     (cdr (contexture-ert--exchange-entries exchange)))))

(defun contexture-ert--differences (was is &optional path)
  "Return where IS differs from WAS, as a list of (PATH WAS IS).
PATH is the list of keys that lead to them."
  (if (and (contexture-ert--plist-p was) (contexture-ert--plist-p is))
      (cl-loop for key in (delete-dups (append (contexture-ert--keys was)
                                               (contexture-ert--keys is) nil))
               append (contexture-ert--differences
                       (plist-get was key) (plist-get is key)
                       (append path (list key))))
    (unless (equal was is) (list (list path was is)))))

(provide 'contexture-ert-exchange)
;;; contexture-ert-exchange.el ends here
