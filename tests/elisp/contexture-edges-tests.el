;;; contexture-edges-tests.el --- Tests of buffers that are not plain  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What happens with read-only, remote, narrowed, indirect and killed
;; buffers, with rectangles, with files that were deleted or renamed,
;; with a second Emacs, and with a server that is stopped meanwhile.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-list)
(require 'contexture-sources)
(require 'dired-aux)
(require 'rect)

(defun contexture-edges--list (manager)
  "List the context MANAGER and return the list's buffer, with its items in it."
  (contexture-list manager)
  (with-current-buffer contexture-list-buffer
    (llm-ert-wait-for (and contexture-list--loaded
                                  (not contexture-list--updating)))
    (current-buffer)))

(defun contexture-edges--column (column)
  "Return what COLUMN of the list shows, from top to bottom."
  (with-current-buffer contexture-list-buffer
    (save-excursion
      (goto-char (point-min))
      (cl-loop while (not (eobp))
               when (tabulated-list-get-entry)
               collect (substring-no-properties (aref it column))
               do (forward-line)))))

(defun contexture-edges--states ()
  "Return the states that the list shows, from top to bottom."
  (contexture-edges--column 6))

(defun contexture-edges--item (&optional manager)
  "Return lines, columns and text of the one item of MANAGER."
  (let ((item (contexture-test-only-item manager)))
    (append (contexture-test-metadata item :start-line :end-line
                                      :start-column :end-column)
            (list (plist-get item :content)))))

(defmacro contexture-edges--with-list (&rest body)
  "Run BODY in a list of the region \"two\" of the file b.el, \"one\\ntwo\".
The variable `file' is the name of that file."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (let ((file (contexture-test-file "b.el" "one" "two")))
       (contexture-test-visiting file
         (contexture-test-message "^Added" (contexture-add-region 5 9)))
       (save-window-excursion
         (with-current-buffer (contexture-edges--list "b.el")
           (goto-char (contexture-list--find
                       (plist-get (car contexture-list--items) :id)))
           ,@body)))))

(defun contexture-edges--edit-buffer ()
  "Return a buffer in which an item is edited, or nil."
  (cl-find-if (lambda (buffer)
                (buffer-local-value 'contexture-list-edit-mode buffer))
              (buffer-list)))

(defun contexture-edges--first ()
  "Return where the first item of the list is."
  (contexture-list--find (plist-get (car contexture-list--items) :id)))

;;;; Buffers of pictures

(ert-deftest contexture-edges-a-picture-is-refused-in-words ()
  (contexture-test-with-server
    (let ((file (concat llm-ert-directory "a.picture")))
      (let ((coding-system-for-write 'no-conversion))
        (write-region "\211PNG\r\n\32\n\0\0\0\15IHDR" nil file nil 'silent))
      (contexture-test-visiting file
        (dolist (command '(contexture-add-buffer contexture-add-dwim))
          (contexture-test-user-error "a\\.picture is a picture or other binary data"
            (call-interactively command)))
        (contexture-test-user-error "a\\.picture is a picture"
          (contexture-add-region 1 12)))
      (should-not contexture--connection))))

;;;; Buffers that visit no file

;; As the manual has it.
(ert-deftest contexture-edges-scope-may-share-what-is-not-in-files ()
  (contexture-test-with-server
    (let ((contexture-add-to
           (lambda () (if buffer-file-name (buffer-name) "*shared*"))))
      (contexture-test-visiting (contexture-test-file "a.el" "one")
        (should (equal (contexture-adding-context) "a.el")))
      (with-temp-buffer
        (insert "what a debugger says")
        (contexture-test-message "^Added .* to the shared context (1 item"
          (contexture-add-buffer)))
      (contexture-test-only-item "*shared*"))))

;;;; Read-only buffers

(ert-deftest contexture-edges-read-only-buffers-are-added-and-left-alone ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "a.el" "(defun f ()" "  1)")
      (view-mode)
      (goto-char 3)
      (dolist (command '(contexture-add-defun contexture-add-buffer contexture-add-dwim))
        (contexture-test-message "^Added\\|again" (funcall command)))
      (contexture-test-message "^Added" (contexture-add-region 1 6))
      (contexture-test-message "^Added" (contexture-add-region 1 16 t))
      (should (equal (mapcar (lambda (item) (plist-get item :content))
                             (contexture-test-items))
                     ;; The definition that was added twice is one item.
                     '("(defun f ()\n  1)\n" "(defun f ()\n  1)\n"
                       "(defu" "(de\n  1\n")))
      (should-not (buffer-modified-p))
      (should buffer-read-only))))

(ert-deftest contexture-edges-nothing-is-inserted-into-a-read-only-buffer ()
  (contexture-test-with-server
    (contexture-request 'add-context '(:manager "m" :content "x"))
    (with-temp-buffer
      (setq buffer-read-only t
            contexture-context "m")
      (should-error (call-interactively #'contexture-insert)
                    :type 'buffer-read-only))))

(ert-deftest contexture-edges-what-shows-context-is-not-added ()
  (contexture-edges--with-list
    (contexture-test-user-error "own buffers; add text" (contexture-add-buffer))
    (contexture-list-edit)
    (with-current-buffer (llm-ert-wait-for (contexture-edges--edit-buffer))
      (contexture-test-user-error "own buffers; add text" (contexture-add-buffer)))))

;;;; Remote buffers

(defmacro contexture-edges--visiting-remotely (&rest body)
  "Run BODY in a buffer that visits the file r.py, three lines, by TRAMP.
The variable `remote' is the name of the file, `local' that without the
machine.  There, the server would find a file with another text."
  (declare (indent 0) (debug t))
  `(contexture-test-with-mock-method
     (contexture-test-with-server
       (let* ((local (contexture-test-file "r.py" "one" "two" "three"))
              (remote (expand-file-name (concat "/mock::" local))))
         (contexture-test-visiting remote
           (contexture-test-file "r.py" "a local file" "of the same name")
           ;; The mock machine is this one: its file has changed, too.
           (set-visited-file-modtime
            (file-attribute-modification-time (file-attributes local)))
           ,@body)))))

(ert-deftest contexture-edges-remote-text-is-sent-by-emacs ()
  (contexture-edges--visiting-remotely
    (goto-char (point-min))
    (insert "not saved\n")
    (dolist (add (list (lambda () (contexture-add-region 11 15))
                       #'contexture-add-buffer
                       (lambda () (contexture-add-file remote 2 2))
                       #'contexture-add-dwim))
      (contexture-test-message "^Added\\|again" (funcall add)))
    (let ((items (contexture-test-items)))
      ;; What is there twice is one item.
      (should (equal (mapcar (lambda (item) (plist-get item :content)) items)
                     '("one\n" "not saved\none\ntwo\nthree\n")))
      (dolist (item items)
        (should (equal (contexture-test-metadata item :filename :project)
                       (list remote nil)))
        (should (eq (plist-get item :state) :fresh)))
      (should-not (llm-ert-calls 'add-file)))))

(ert-deftest contexture-edges-remote-items-are-never-compared-with-local-files ()
  (contexture-edges--visiting-remotely
    (contexture-test-message "^Added" (contexture-add-region 1 5))
    (let ((inhibit-message t)
          (manager (contexture-adding-context))
          looked)
      (cl-letf* ((attributes (symbol-function 'file-attributes))
                 ((symbol-function 'file-attributes)
                  (lambda (file &rest arguments)
                    (when (file-remote-p file) (push file looked))
                    (apply attributes file arguments))))
        (with-current-buffer (contexture-edges--list manager)
          (should (equal (contexture-edges--states) '("remote")))
          (contexture-test-message
              "^Read the files again: nothing has changed; those on other machines were not read"
            (contexture-list-refresh))
          (contexture-test-settle)
          (should (equal (contexture-edges--states) '("remote")))
          (should-not looked)))
      (should (equal (plist-get (contexture-test-only-item manager) :content)
                     "one\n")))))

(ert-deftest contexture-edges-remote-items-are-visited-where-they-are ()
  (contexture-edges--visiting-remotely
    (contexture-test-message "^Added" (contexture-add-region 5 9))
    (let ((manager (contexture-adding-context))
          (buffer (current-buffer)))
      (with-current-buffer (contexture-edges--list manager)
        (goto-char (contexture-edges--first))
        (contexture-list-visit)
        (should (eq (window-buffer) buffer))
        (with-current-buffer buffer
          (should (= (line-number-at-pos) 2)))))))

(ert-deftest contexture-edges-remote-directories-are-not-walked-here ()
  (contexture-edges--visiting-remotely
    (ignore-errors (contexture-add-directory (file-name-directory remote) "files"))
    (should-not (llm-ert-calls 'add-tree))))

;;;; Killed buffers

(ert-deftest contexture-edges-items-outlive-the-buffer-of-their-file ()
  (contexture-edges--with-list
    (kill-buffer "b.el")
    (contexture-list-visit)
    (with-current-buffer (window-buffer)
      (should (equal (buffer-file-name) file))
      (should (= (line-number-at-pos) 2))
      (contexture-mode)
      (llm-ert-wait-for
          (cl-find-if (lambda (overlay)
                        (and (= (overlay-start overlay) 5)
                             (overlay-get overlay 'contexture-mark)))
                      (overlays-in (point-min) (point-max)))))))

(ert-deftest contexture-edges-items-outlive-a-buffer-without-file ()
  (contexture-test-with-server
    (with-current-buffer (get-buffer-create "some notes")
      (insert "remember\nthis")
      (contexture-test-message "^Added" (contexture-add-buffer))
      (kill-buffer))
    (with-current-buffer (contexture-edges--list "some notes")
      (should (equal (contexture-edges--column 2) '("some notes")))
      (goto-char (contexture-edges--first))
      (contexture-test-message "some notes is gone; this is the text"
        (contexture-list-visit))
      (should (equal (with-current-buffer contexture-list--item-buffer
                       (buffer-string))
                     "remember\nthis")))))

(ert-deftest contexture-edges-a-killed-list-leaves-no-trouble ()
  (contexture-edges--with-list
    (contexture-ert-with-stopped-server
      (contexture-list-remove)
      (contexture-list-show)
      (contexture-list-refresh)
      (kill-buffer contexture-list-buffer))
    (contexture-test-settle)
    (should-not (contexture-test-items "b.el"))
    (should-not contexture-notification-functions)
    (should-not (cl-find #'contexture--tell-waiting timer-list
                         :key #'timer--function))))

;;;; Deleted and renamed files

(ert-deftest contexture-edges-a-deleted-file-is-missing-and-can-be-removed ()
  (contexture-edges--with-list
    (kill-buffer "b.el")
    (delete-file file)
    (contexture-test-message "the file of 1 item is gone" (contexture-list-refresh))
    (llm-ert-wait-for (equal (contexture-edges--states) '("gone")))
    (contexture-test-message "b.el is gone; this is the text" (contexture-list-visit))
    (should (equal (with-current-buffer contexture-list--item-buffer (buffer-string))
                   "two\n"))
    (contexture-test-message "Removed 1 item" (contexture-list-remove))
    (llm-ert-wait-for (null (contexture-edges--states)))))

(ert-deftest contexture-edges-a-deleted-file-that-is-still-open-is-visited ()
  (contexture-edges--with-list
    (delete-file file)
    (contexture-list-visit)
    (with-current-buffer (window-buffer)
      (should (equal (buffer-name) "b.el"))
      (should (= (line-number-at-pos) 2)))))

(ert-deftest contexture-edges-a-file-that-comes-back-is-fresh-again ()
  (contexture-edges--with-list
    ;; A file that is only moved is followed.
    (contexture-test-message "^Read the files again: nothing has changed$"
      (contexture-list-refresh))
    (copy-file file (concat file ".away"))
    (delete-file file)
    (contexture-test-message "^Read the files again: the file of 1 item is gone$"
      (contexture-list-refresh))
    (llm-ert-wait-for (equal (contexture-edges--states) '("gone")))
    (copy-file (concat file ".away") file)
    (contexture-test-message "Read .* again" (contexture-list-refresh))
    (llm-ert-wait-for (equal (contexture-edges--states) '("current")))))

(ert-deftest contexture-edges-a-renamed-file-is-missing-under-its-old-name ()
  (contexture-edges--with-list
    (let ((new (expand-file-name "c.el")))
      ;; A live item is renamed with its buffer.
      (contexture-test-message "^1 item kept" (contexture-list-keep-copy))
      (dired-rename-file file new nil)
      (should (equal (buffer-file-name (get-file-buffer new)) new))
      (contexture-test-message "the file of 1 item is gone" (contexture-list-refresh))
      (llm-ert-wait-for (equal (contexture-edges--states) '("gone")))
      (contexture-test-message "b.el is gone; this is the text"
        (contexture-list-visit))
      (with-current-buffer (get-file-buffer new)
        (contexture-test-message "^Added .*c.el:2 " (contexture-add-region 5 9))
        (should (equal (contexture-test-metadata (contexture-test-only-item "c.el")
                                                 :filename)
                       (list new)))))))

(ert-deftest contexture-edges-a-file-that-became-a-folder-breaks-nothing ()
  (contexture-edges--with-list
    (kill-buffer "b.el")
    (delete-file file)
    (make-directory file)
    (contexture-test-message "could not be found" (contexture-list-refresh))
    (llm-ert-wait-for (equal (contexture-edges--states) '("changed")))))

;;;; Rectangles

(defmacro contexture-edges--with-table (&rest body)
  "Run BODY in a buffer that visits a table of four lines."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (contexture-test-visiting
         (contexture-test-file "t.txt" "name   price" "apple  1.20" "fig" "plum   2.00 x")
       (transient-mark-mode 1)
       ,@body)))

(defun contexture-edges--select-rectangle (from-line from-column to-line to-column)
  "Mark the rectangle between two corners, given by lines and columns."
  (goto-char (contexture--line-position from-line))
  (move-to-column from-column)
  (push-mark nil t t)
  (rectangle-mark-mode 1)
  (goto-char (contexture--line-position to-line))
  (move-to-column to-column))

(ert-deftest contexture-edges-a-rectangle-is-sent-as-its-lines ()
  (contexture-edges--with-table
    (contexture-edges--select-rectangle 1 7 4 11)
    (contexture-test-message "Added .*t.txt:1-4 columns 8-11 to"
      (call-interactively #'contexture-add-region))
    (should (equal (contexture-edges--item)
                   '(1 4 8 11 "pric\n1.20\n\n2.00\n")))
    (should (equal (contexture-test-metadata (contexture-test-only-item)
                                             :origin :partial)
                   '(:region t)))))

(ert-deftest contexture-edges-a-rectangle-may-end-at-a-line-start ()
  (contexture-edges--with-table
    (contexture-edges--select-rectangle 2 4 4 0)
    (contexture-test-message "^Added" (contexture-add-dwim))
    (should (equal (contexture-edges--item) '(2 4 1 4 "appl\nfig\nplum\n")))))

(ert-deftest contexture-edges-a-rectangle-may-be-marked-from-any-corner ()
  (contexture-edges--with-table
    (contexture-edges--select-rectangle 4 7 1 0)
    (contexture-test-message "^Added" (contexture-add-dwim))
    (should (equal (contexture-edges--item)
                   '(1 4 1 7 "name\napple\nfig\nplum\n")))))

(ert-deftest contexture-edges-a-rectangle-has-some-columns ()
  (contexture-edges--with-table
    (contexture-edges--select-rectangle 1 2 4 2)
    (contexture-test-user-error "rectangle is empty"
      (call-interactively #'contexture-add-region))
    (should-not (llm-ert-calls 'add-context))))

(ert-deftest contexture-edges-a-region-is-no-rectangle ()
  (contexture-edges--with-table
    (push-mark 3 t t)
    (goto-char 17)
    (contexture-test-message "Added .*t.txt:1-2 to"
      (call-interactively #'contexture-add-region))
    (should (equal (nth 4 (contexture-edges--item)) "me   price\napp"))))

(ert-deftest contexture-edges-a-rectangle-cuts-tabs-and-changes-nothing ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "t.txt" "xxxxyyyyzz" "\tab.")
      (setq buffer-read-only t)
      (contexture-test-message "columns 5-10" (contexture-add-region 5 15 t))
      (should (equal (contexture-edges--item) '(1 2 5 10 "yyyyzz\n    ab\n")))
      (should-not (buffer-modified-p)))))

(ert-deftest contexture-edges-a-rectangle-counts-lines-of-the-whole-buffer ()
  (contexture-edges--with-table
    (goto-char (contexture--line-position 2))
    (narrow-to-region (point) (point-max))
    (contexture-edges--select-rectangle 1 0 3 3)
    (contexture-test-message "t.txt:2-4 columns 1-3" (contexture-add-dwim))
    (should (equal (contexture-edges--item) '(2 4 1 3 "app\nfig\nplu\n")))))

(ert-deftest contexture-edges-a-block-of-evil-is-a-rectangle ()
  (contexture-edges--with-table
    (defvar evil-state)
    (let ((evil-state 'visual) (type 'block))
      (cl-letf (((symbol-function 'evil-visual-type) (lambda () type))
                ((symbol-function 'evil-visual-range)
                 (lambda () (list 8 (+ 13 12) 'block :expanded t))))
        (contexture-test-message "t.txt:1-2 columns 8-11" (contexture-add-dwim))
        (should (equal (contexture-edges--item) '(1 2 8 11 "pric\n1.20\n")))
        (setq type 'line)
        (should-not (contexture-sources--block-selection))
        (setq evil-state 'normal type 'block)
        (should-not (contexture-sources--block-selection))))))

(ert-deftest contexture-edges-a-rectangle-is-stale-once-its-lines-change ()
  (contexture-edges--with-table
    (contexture-edges--select-rectangle 2 0 2 5)
    (contexture-test-message "^Added" (contexture-add-dwim))
    (should (eq (plist-get (contexture-test-only-item) :state) :fresh))
    (contexture-test-file "t.txt" "name   price" "quince 3.20")
    (should (eq (plist-get (contexture-test-only-item "t.txt") :state) :stale))))

;;;; Narrowed and indirect buffers

(defmacro contexture-edges--with-indirect (&rest body)
  "Run BODY in an indirect buffer of one that visits b.el, of four lines."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (contexture-test-visiting (contexture-test-file "b.el" "1" "2" "3" "4")
       (with-current-buffer (make-indirect-buffer (current-buffer) "indirect" t)
         ,@body))))

(ert-deftest contexture-edges-a-narrowed-indirect-buffer-counts-all-lines ()
  (contexture-edges--with-indirect
    (narrow-to-region 5 9)
    (contexture-test-message "Added .*b.el:3-4 to buffer b.el" (contexture-add-buffer))
    (should (equal (contexture-edges--item "b.el") '(3 4 nil nil "3\n4\n")))
    (should (equal (contexture-test-metadata (contexture-test-only-item "b.el") :buffer)
                   '("b.el")))))

(ert-deftest contexture-edges-an-indirect-buffer-sees-past-its-narrowed-base ()
  (contexture-edges--with-indirect
    (with-current-buffer (buffer-base-buffer) (narrow-to-region 7 8))
    (contexture-test-message "^Added .*b.el:2" (contexture-add-region 3 5))
    (should (equal (contexture-edges--item "b.el") '(2 2 nil nil "2\n")))))

(ert-deftest contexture-edges-an-indirect-buffer-has-the-edits-of-its-base ()
  (contexture-edges--with-indirect
    (with-current-buffer (buffer-base-buffer)
      (goto-char (point-min))
      (insert "new\n"))
    (contexture-test-message "^Added .*b.el:2-3" (contexture-add-region 5 9))
    (let ((item (contexture-test-only-item "b.el")))
      (should (equal (plist-get item :content) "1\n2\n"))
      (should (equal (contexture-test-metadata item :modified) '(t))))))

(ert-deftest contexture-edges-a-rectangle-in-a-narrowed-indirect-buffer ()
  (contexture-edges--with-indirect
    (narrow-to-region 3 9)
    (transient-mark-mode 1)
    (contexture-edges--select-rectangle 1 0 2 1)
    (contexture-test-message "^Added .*b.el:2-3 columns 1-1 to buffer b.el"
      (contexture-add-dwim))
    (should (equal (contexture-edges--item "b.el") '(2 3 1 1 "2\n3\n")))))

;;;; Two of them

(ert-deftest contexture-edges-two-see-each-others-removals ()
  (contexture-test-with-state
    (let (other)
      (dolist (text '("one" "two" "three"))
        (contexture-request 'add-context (list :manager "m" :content text)))
      (with-current-buffer (contexture-edges--list "m")
        (let ((ids (mapcar (lambda (item) (plist-get item :id))
                           contexture-list--items)))
          (goto-char (contexture-list--find (nth 2 ids)))
          (contexture-list--tag (list (nth 0 ids) (nth 1 ids)) ?>)
          (contexture-test-as-other-emacs other
            (contexture-request 'remove-items
                                (list :manager "m" :ids (list (nth 0 ids)))))
          (llm-ert-wait-for (= (length (contexture-edges--states)) 2))
          (should (equal (tabulated-list-get-id) (nth 2 ids)))
          (should (equal (contexture-list--tagged ?>) (list (nth 1 ids))))
          (contexture-list-remove)
          (llm-ert-wait-for (= (length (contexture-edges--states)) 1))
          (contexture-test-as-other-emacs other
            (should (equal (mapcar (lambda (item) (plist-get item :content))
                                   (contexture-test-items "m"))
                           '("three"))))))
      (contexture-test-as-other-emacs other (contexture-disconnect)))))

(ert-deftest contexture-edges-what-another-removed-is-refused-and-seen ()
  (contexture-test-with-state
    (let (other)
      (contexture-request 'add-context '(:manager "m" :content "one"))
      (contexture-request 'add-context '(:manager "m" :content "two"))
      (contexture-test-as-other-emacs other (contexture-request 'ping))
      (with-current-buffer (contexture-edges--list "m")
        (let ((id (plist-get (car contexture-list--items) :id)))
          (contexture-unwatch #'contexture-list--changed) ; it has not heard yet
          (contexture-test-as-other-emacs other
            (contexture-request 'remove-items (list :manager "m" :ids (list id))))
          (goto-char (contexture-list--find id))
          (contexture-test-message "no item ctx-1" (contexture-list-remove))
          (llm-ert-wait-for (= (length (contexture-edges--states)) 1))))
      (contexture-test-as-other-emacs other (contexture-disconnect)))))

;;;; A server that is stopped

(ert-deftest contexture-edges-a-stopped-server-holds-up-no-key-of-the-list ()
  (contexture-edges--with-list
    (contexture-request 'add-context '(:manager "b.el" :content "another"))
    (llm-ert-wait-for (= (length (contexture-edges--states)) 2))
    (let ((contexture--patience 0)
          (id (tabulated-list-get-id))
          (inhibit-message t))
      (contexture-ert-with-stopped-server
        (dolist (command '(contexture-list-pin contexture-list-show contexture-list-copy
                           contexture-list-edit contexture-list-refresh
                           contexture-list-mark contexture-list-unmark-all
                           contexture-list-unsort contexture-list-remove))
          (goto-char (contexture-list--find id))
          (contexture-test-at-once (call-interactively command)))
        (contexture-test-at-once (contexture-list-sort "Tokens"))
        (contexture-test-at-once (contexture-list-unsort))
        (goto-char (contexture-list--find id))
        (contexture-test-at-once (contexture-list-move-down))
        (should (equal (tabulated-list-get-id) id))
        (contexture-test-at-once (contexture-list-filter-contents "tw"))
        (contexture-test-at-once (contexture-list-unfilter))
        (contexture-test-message "Waiting for the Contexture server"
          (contexture-list-move-up))
        (should (= (length (contexture-edges--states)) 2)))
      (llm-ert-wait-for (= (length (contexture-edges--states)) 1))
      ;; What looks at files is answered when it has done so.
      (llm-ert-wait-for (equal (car kill-ring) "two\n"))
      (llm-ert-wait-for (contexture-edges--edit-buffer)))))

(ert-deftest contexture-edges-a-stopped-server-holds-up-no-opening-of-the-list ()
  (contexture-edges--with-list
    (contexture-ert-with-stopped-server
      (with-temp-buffer
        (contexture-test-at-once (call-interactively #'contexture-list)))
      (should (equal contexture-context "b.el"))
      (should (equal (contexture-edges--column 3) '("2")))
      (with-temp-buffer
        (contexture-test-at-once (contexture-list "another")))
      (should (equal contexture-context "another"))
      (should (equal (contexture-edges--column 3) nil))
      (should (string-match-p "another: the server has not answered yet"
                              header-line-format))
      (contexture-test-message "Waiting for the Contexture server"
        (let ((contexture--patience 0)) (contexture-list "a third"))))
    (contexture-list "another")
    (llm-ert-wait-for (string-match-p "no items yet" (buffer-string)))))

(ert-deftest contexture-edges-who-adds-is-told-that-the-server-is-stopped ()
  (contexture-edges--with-list
    (with-current-buffer "b.el"
      (contexture-ert-with-stopped-server
        (let ((contexture--patience 0))
          (contexture-test-message "Waiting for the Contexture server"
            (contexture-test-at-once (contexture-add-buffer)))
          (contexture-test-message "Waiting for the Contexture server"
            (contexture-test-at-once (contexture-undo))))))
    (contexture-test-settle)
    (should (equal (length (contexture-test-items "b.el")) 1))))

;;;; A server that never answers

(ert-deftest contexture-edges-a-mute-server-holds-up-nobody-who-adds ()
  "Whatever is added, and although the server has told nothing yet."
  (let ((contexture-test-binary '("sh" "-c" "exec cat >/dev/null")))
    (contexture-test-with-server
      (let ((contexture-add-to 'project) (kill-ring '("killed")) (contexture--patience 0)
            (inhibit-message t))
        (contexture-test-git "init" "-q")
        (dolist (command (list #'contexture-add-buffer #'contexture-add-defun #'contexture-add-dwim
                               (lambda () (contexture-add-region 1 5))
                               (lambda () (contexture-add-file "b.el"))
                               (lambda () (contexture-add-kill "killed"))
                               #'contexture-add-diff (lambda () (contexture-add-diff t))
                               (lambda () (contexture-add-directory "."))
                               (lambda () (contexture-add-project))
                               (lambda ()
                                 (dired ".")
                                 (dired-mark-files-regexp "el\\'")
                                 (contexture-add-dwim)
                                 (kill-buffer))))
          ;; A new buffer each time, of which no layers are known.
          (contexture-test-file "b.el" "(defun g () 1)")
          (let ((buffer (find-file-noselect (contexture-test-file "a.el" "(defun f ()" "  (g))"))))
            (save-window-excursion
              (switch-to-buffer buffer)
              (forward-line)
              (contexture-test-message "Waiting for the Contexture server"
                (contexture-test-at-once (funcall command))))
            (kill-buffer buffer)))))))

(ert-deftest contexture-edges-a-mute-server-is-waited-for-only-once ()
  (contexture-test-with-server
    (contexture-request 'ping)
    (let ((contexture--short-patience 0.01) (contexture-request-timeout 0.05))
      (contexture-ert-with-stopped-server
        (dolist (limit '("0.05" "0.01" "0.01"))
          (should (string-search (format "no answer within %s s" limit)
                                 (cadr (should-error (contexture-request 'ping)
                                                     :type 'contexture-error)))))))
    (llm-ert-wait-for (not (oref contexture--connection silent)))
    (should (eq :pong (contexture-request 'ping)))))

(provide 'contexture-edges-tests)
;;; contexture-edges-tests.el ends here
