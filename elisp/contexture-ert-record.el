;;; contexture-ert-record.el --- Write recordings that are the same twice  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, lisp
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Makes a recording of the messages of a test.  What differs from run to
;; run is left out, numbered anew or put in order: request keys, ids of
;; calls, names of folders, and the order of answers to calls that were
;; made at the same time.

;;; Code:

(require 'cl-lib)
(require 'contexture-wire)
(require 'contexture-ert-exchange)
(eval-when-compile (require 'subr-x))

(defun contexture-ert--write-exchange (file entries folders)
  "Write ENTRIES as an exchange to FILE.
FOLDERS is an alist of folders, or nil, and what stands for them.  The
comments at the head of an older FILE are kept."
  (let ((remarks (contexture-ert--remarks file))
        (coding-system-for-write 'utf-8-unix))
    (make-directory (file-name-directory (expand-file-name file)) t)
    (with-temp-file file
      (insert remarks)
      (dolist (entry entries)
        (pcase-dolist (`(,folder . ,placeholder) folders)
          (setq entry (contexture-ert--translate entry folder placeholder)))
        (insert (if (eq (car entry) 'sent) "> " "< ") (cadr entry) "\n")))))

(defun contexture-ert--remarks (file)
  "Return the comments at the head of FILE, or the empty string."
  (if (not (file-readable-p file))
      ""
    (with-temp-buffer
      (insert-file-contents file)
      (while (looking-at ";") (forward-line))
      (buffer-substring (point-min) (point)))))

(defconst contexture-ert--own-methods
  '("server-info" "subscribe" "configure-provider" "ping")
  "Methods that the client and the kit call by themselves; no recording has them.")

(defun contexture-ert--recordable (entries)
  "Return ENTRIES without what differs from run to run.
These are the calls that the client makes by itself; the request keys; the
ids; and the order of answers to calls that were made at the same time."
  (let* ((read (cl-loop for entry in entries
                        for message = (contexture-ert--decode (cadr entry))
                        when message collect (cons entry message)))
         (dropped (cl-loop for pair in read
                           when (member (contexture-ert--method-of pair)
                                        contexture-ert--own-methods)
                           collect (plist-get (cdr pair) :id))))
    (contexture-ert--numbered
     (contexture-ert--ordered
      (cl-remove-if (lambda (pair)
                      (member (or (plist-get (cdr pair) :id) 'none) dropped))
                    read)
      (contexture-ert--topics read)))))

(defun contexture-ert--method-of (pair)
  "Return the name of the method that is called in PAIR, (ENTRY . MESSAGE)."
  (and (eq (caar pair) 'sent) (plist-get (cdr pair) :method)))

(defun contexture-ert--numbered (pairs)
  "Return the entries of PAIRS, (ENTRY . MESSAGE), with ids from 1 on."
  (let (ids)
    (cl-loop for (entry . message) in pairs
             for id = (plist-get message :id)
             when (and id (eq (car entry) 'sent))
             do (push (cons id (1+ (length ids))) ids)
             collect (list (car entry)
                           (contexture-ert--renumbered
                            (contexture-ert--without-key entry message) ids)))))

(defun contexture-ert--without-key (entry message)
  "Return the line of ENTRY, which holds MESSAGE, without its request key."
  (if (plist-member (plist-get message :params) :request-key)
      (let ((params (contexture-ert--plist-without
                     (plist-get message :params) :request-key)))
        (string-trim-right
         (car (contexture--encode
               (plist-put (copy-sequence message) :params params)))
         "\n"))
    (cadr entry)))

;;;; Order

;; A call that made no progress, and that nothing was said about before it
;; was answered, is answered at once: its answer does not depend on what
;; Emacs sent meanwhile.  What belongs to the others stays between the
;; messages between which it arrived, in the order of the calls.  The
;; server joins notifications as time has it: of those that calls sent
;; together brought about, only the last about each context stays, and none
;; to which the client subscribed only after the call.

(defun contexture-ert--ordered (pairs topics)
  "Return PAIRS, (ENTRY . MESSAGE), in an order that does not depend on time.
TOPICS are as from `contexture-ert--topics'."
  (let* ((owned (contexture-ert--last-news
                 (contexture-ert--wanted (contexture-ert--owned pairs) topics)
                 (contexture-ert--bursts pairs)))
         (long (cl-loop for pair in pairs
                        for method = (plist-get (cdr pair) :method)
                        when (member method '("progress" "cancel"))
                        collect (plist-get (plist-get (cdr pair) :params) :id)))
         result block)
    (cl-flet ((flush ()
                (setq result (append (reverse (contexture-ert--by-owner
                                               (nreverse block)))
                                     result)
                      block nil)))
      (dolist (pair pairs)
        (let ((id (plist-get (cdr pair) :id))
              (owner (cdr (assq pair owned))))
          (cond ((eq (caar pair) 'sent)
                 (flush)
                 (push pair result)
                 (unless (or (null id) (member id long))
                   (dolist (own owned) ; the answer, then what it brought about
                     (when (equal (cdr own) id) (push (car own) result)))))
                ((and (assq pair owned) (or (null owner) (member owner long)))
                 (push (cons pair owner) block)))))
      (flush))
    (nreverse result)))

(defun contexture-ert--topics (pairs)
  "Return an alist from the id of each call in PAIRS to the topics at that time.
They are those to which the client had subscribed before the call."
  (let (topics)
    (cl-loop for pair in pairs
             for method = (contexture-ert--method-of pair)
             for message = (cdr pair)
             when (equal method "subscribe")
             do (setq topics (plist-get (plist-get message :params) :topics))
             when method collect (cons (plist-get message :id) topics))))

(defun contexture-ert--wanted (owned topics)
  "Return OWNED without notifications to which the client subscribed too late.
It may get one nevertheless, if it subscribes right after the call that the
notification belongs to.  OWNED is an alist from pairs to ids, and TOPICS
from ids to topics."
  (cl-remove-if (pcase-lambda (`((,_ . ,message) . ,owner))
                  (let ((method (plist-get message :method)))
                    (and owner method (not (equal method "progress"))
                         (not (member method (cdr (assoc owner topics)))))))
                owned))

(defun contexture-ert--bursts (pairs)
  "Return an alist from the id of each call in PAIRS to the number of its burst.
Calls between which nothing was received are one burst."
  (let ((number 0) last)
    (cl-loop for (entry . message) in pairs
             when (and (eq (car entry) 'sent) (not (eq last 'sent)))
             do (cl-incf number)
             do (setq last (car entry))
             when (and (eq last 'sent) (plist-get message :id))
             collect (cons (plist-get message :id) number))))

(defun contexture-ert--last-news (owned bursts)
  "Return OWNED with the last notification of each burst only, after the answers.
OWNED is an alist from pairs to ids, and BURSTS from ids to numbers."
  (let (answers news)
    (dolist (own owned)
      (let* ((message (cdar own))
             (key (and (not (plist-get message :id))
                       (not (equal (plist-get message :method) "progress"))
                       (list (plist-get message :method)
                             (plist-get (plist-get message :params) :manager)
                             (cdr (assoc (cdr own) bursts))))))
        (cond ((null key) (push own answers))
              ((cadr key) (setf (alist-get key news nil nil #'equal) own))
              (t (push (cons key own) news)))))
    (append (nreverse answers)
            (cl-sort (mapcar #'cdr news) #'<
                     :key (lambda (own) (cl-position own owned :test #'eq))))))

(defun contexture-ert--owned (pairs)
  "Return an alist from each received pair of PAIRS to the id of its call.
A notification belongs to the call with the same version, or else to the
call that was answered next."
  (let ((answers (cl-loop for pair in pairs
                          when (and (eq (caar pair) 'received)
                                    (plist-get (cdr pair) :id))
                          collect pair)))
    (cl-loop for (pair . after) on pairs
             when (eq (caar pair) 'received)
             collect (cons pair (contexture-ert--owner-of (cdr pair) after answers)))))

(defun contexture-ert--owner-of (message after answers)
  "Return the id of the call that MESSAGE belongs to, or nil.
AFTER is what follows it, and ANSWERS are all answers."
  (or (plist-get message :id)
      (and (equal (plist-get message :method) "progress")
           (plist-get (plist-get message :params) :id))
      (let ((version (plist-get (plist-get message :params) :version)))
        (plist-get
         (cdr (or (and version
                       (cl-find version answers :test #'equal
                                :key #'contexture-ert--version-of))
                  (cl-find-if (lambda (pair) (memq pair answers)) after)))
         :id))))

(defun contexture-ert--version-of (pair)
  "Return the version in the result of PAIR, (ENTRY . MESSAGE), or nil."
  (let ((result (plist-get (cdr pair) :result)))
    (and (contexture-ert--plist-p result) (plist-get result :version))))

(defun contexture-ert--by-owner (block)
  "Return the pairs of BLOCK, a list of (PAIR . OWNER), by their calls."
  (mapcar #'car (cl-stable-sort (copy-sequence block) #'<
                                :key (lambda (it) (or (cdr it) most-positive-fixnum)))))

(provide 'contexture-ert-record)
;;; contexture-ert-record.el ends here
